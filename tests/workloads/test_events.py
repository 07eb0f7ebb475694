"""A computation pauses exactly while one of its hosts is down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.events import ElementState, HostDowntime, ScenarioEvent

HOSTS = ("h0", "h1", "h2")
ticks = st.integers(0, 60)


def pauses(spans: dict[str, list[tuple[int, int]]]) -> HostDowntime:
    events = [
        ScenarioEvent(at_s=at_s, host=host, state=state)
        for host, some in spans.items()
        for span in some
        for at_s, state in zip(span, (ElementState.DOWN, ElementState.UP), strict=True)
    ]
    return HostDowntime(sorted(events, key=lambda event: event.at_s))


@st.composite
def spans(draw: st.DrawFn) -> dict[str, list[tuple[int, int]]]:
    """Every host is down for whole seconds now and then, without overlaps."""
    found = {}
    for host in HOSTS:
        bounds = sorted(draw(st.sets(ticks, max_size=6)))
        found[host] = list(zip(bounds[::2], bounds[1::2], strict=False))
    return found


@given(spans(), st.sets(st.sampled_from(HOSTS), min_size=1), ticks, st.integers(1, 30))
def test_it_computes_for_as_long_as_it_should_second_by_second(
    down: dict[str, list[tuple[int, int]]], on: set[str], start_s: int, duration_s: int
) -> None:
    def stands_still(second: int) -> bool:
        return any(from_s <= second < to_s for host in on for from_s, to_s in down[host])

    second, left = start_s, duration_s
    while left:
        left -= not stands_still(second)
        second += 1
    found = pauses(down)
    hosts = tuple(sorted(on))
    assert found.end_s(hosts, float(start_s), float(duration_s)) == second
    computing = found.computing(hosts, float(start_s), float(second))
    covered = [at_s for at_s in range(start_s, second) if any(from_s <= at_s < to_s for from_s, to_s in computing)]
    assert covered == [at_s for at_s in range(start_s, second) if not stands_still(at_s)]
    assert sum(to_s - from_s for from_s, to_s in computing) == duration_s


def test_without_events_nothing_is_different_to_the_bit() -> None:
    assert HostDowntime().end_s(HOSTS, 0.1, 0.2) == 0.1 + 0.2
    assert HostDowntime().computing(HOSTS, 0.1, 0.7) == [(0.1, 0.7)]


@pytest.mark.parametrize(("start_s", "end_s"), [(0.0, 1.5), (1.2, 2.5), (2.0, 2.5), (3.0, 3.5)])
def test_a_computation_of_half_a_second_around_an_outage(start_s: float, end_s: float) -> None:
    found = pauses({"h1": [(1, 2)]})
    expected = {0.0: 0.5}.get(start_s, end_s)
    assert found.end_s(("h0", "h1"), start_s, 0.5) == pytest.approx(expected)
    assert found.end_s(("h0",), start_s, 0.5) == start_s + 0.5
