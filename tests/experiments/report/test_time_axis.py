import math
from dataclasses import replace

import pytest

from experiments.report.figure import add_axes, new_figure
from experiments.report.time_axis import TimeSpan, close_look, mark_events, outages, show_time
from tests.experiments.report.builders import make_job, make_result
from workloads.events import ElementState, ScenarioEvent


def event(at_s: float, state: ElementState, switch: str = "t0") -> ScenarioEvent:
    return ScenarioEvent(at_s=at_s, switch=switch, state=state)


def look(*results: object) -> tuple[float, float]:
    span = close_look(results)  # type: ignore[arg-type]
    return span.from_s, span.to_s


def test_a_close_look_is_a_few_iterations_of_the_slowest_job_in_the_middle_of_the_window() -> None:
    slow = make_result(jobs=(make_job("a", 0.5), make_job("b", 1.6)))
    assert look(make_result(), slow) == pytest.approx((5 - 1.75 * 1.6, 5 + 1.75 * 1.6))


def test_a_close_look_stays_inside_what_all_policies_have_measured() -> None:
    short = replace(make_result(jobs=(make_job("a", 4.0),)), window_to_s=4.0)
    assert look(make_result(), short) == (1.0, 4.0)


@pytest.mark.parametrize(("at_s", "middle_s"), [(6.0, 6.0), (1.5, 2.75), (0.5, 5.0)])
def test_a_close_look_is_about_the_first_event_in_the_window(at_s: float, middle_s: float) -> None:
    events = (event(at_s, ElementState.DOWN), event(9.5, ElementState.DOWN))
    assert look(make_result(events=events)) == pytest.approx((middle_s - 1.75, middle_s + 1.75))


def test_windows_that_do_not_overlap_are_shown_from_the_start_of_the_run() -> None:
    late = replace(make_result(), window_from_s=9.5, window_to_s=9.9)
    from_s, to_s = look(make_result(), late)
    assert 0 <= from_s < to_s <= 10.0


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (TimeSpan(2.0, 6.0), ["2 s", "3 s", "4 s", "5 s", "6 s"]),
        (TimeSpan(0.13, 0.58), ["0.2 s", "0.3 s", "0.4 s", "0.5 s"]),
        (TimeSpan(0.0, 90.0), ["0 s", "20 s", "40 s", "60 s", "80 s"]),
    ],
)
def test_ticks_stand_at_round_times_inside_the_axis(span: TimeSpan, labels: list[str]) -> None:
    axes = add_axes(new_figure(50), 5, 20)
    show_time(axes, span, labelled=True)
    assert [label.get_text() for label in axes.get_xticklabels()] == labels


def test_an_outage_lasts_from_down_to_up_of_the_same_element() -> None:
    down, up = ElementState.DOWN, ElementState.UP
    found = outages([event(1.0, down), event(2.0, down, "a0"), event(3.0, up), event(4.0, down)])
    assert [(outage.from_s, outage.to_s) for outage in found] == [(1.0, 3.0), (2.0, math.inf), (4.0, math.inf)]


def test_outages_are_shaded_inside_bands_only() -> None:
    axes = add_axes(new_figure(50), 5, 20)
    events = [event(3.0, ElementState.DOWN), event(9.0, ElementState.UP)]
    mark_events(axes, events, TimeSpan(2.0, 6.0), [(0.0, 1.0), (4.0, 5.0)])
    shaded = [found.get_paths()[0].get_extents() for found in axes.collections if found.get_alpha()]
    assert [(box.x0, box.x1, box.y0, box.y1) for box in shaded] == [(3.0, 6.0, 0.0, 1.0), (3.0, 6.0, 4.0, 5.0)]
    assert len(axes.collections) == 4  # one line a band for the event in sight
