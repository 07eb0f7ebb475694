"""What links carry beside what jobs send: bursts are not mistaken for it, and it is found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

import numpy as np
import pytest

from controller.telemetry.foreign_loads import ForeignLoads
from controller.telemetry.link_measurements import WindowLoads
from controller.telemetry.planned_loads import PlannedLoads
from controller.telemetry.telemetry import STALE_AFTER_S
from hostlib.telemetry.prober import Pair, Prober, Target
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from topologies.specification import ClosSpecification

NIC = IPv4Address("10.0.0.1")
PAIR = Pair(NIC, IPv4Address("10.0.2.1"))
TICK_S = 0.002
LINK = 9
FABRIC = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=1
).build()
Load = Callable[[float], float]
"""The share of the link's rate that is sent at a time."""


def probes_s(seed: int, ports: int, until_s: float) -> Iterator[float]:
    """When a host that keeps so many ports of a pair known sends the probes that cross the link."""
    prober = Prober({NIC: 1e9}, session=seed)
    prober.set_targets([Target(PAIR, tuple(range(50_000, 50_000 + ports)), is_exploring=False)], 0.0)
    now_s = 0.0
    while now_s < until_s:
        yield from (now_s for _ in prober.take(now_s))
        due_s = prober.next_s
        assert due_s is not None
        now_s = max(now_s + TICK_S, due_s)


def bursts(period_s: float, share: float, begins_s: float = 0.0, rate: float = 1.0) -> Load:
    """A sender that sends at a rate for a share of each period."""
    return lambda time_s: rate * ((time_s - begins_s) % period_s < share * period_s)


def constant(share: float) -> Load:
    return lambda _: share


@dataclass
class Link:
    """One link of a fabric, with jobs that are taken to send ``planned`` of its rate, ``iteration_s`` in one go."""

    planned: float = 0.0
    iteration_s: float = 0.0

    def __post_init__(self) -> None:
        self.loads = ForeignLoads(FABRIC, UTILISATION_WINDOW_US, STALE_AFTER_S)
        self.expect(self.planned, self.iteration_s)

    def expect(self, planned: float, iteration_s: float) -> None:
        shares = np.zeros((2, len(FABRIC.links)))
        shares[:, LINK] = planned, iteration_s
        self.loads.set_expected(PlannedLoads(*shares))

    def tell(self, time_s: float, share: float, host: str = "h2") -> None:
        bps = share * FABRIC.links[LINK].rate_bps
        self.loads.record(WindowLoads(np.array([LINK]), np.array([time_s]), np.array([bps])), host)

    def found(self, now_s: float) -> float:
        """The share of the rate that others are found to take."""
        loads = self.loads.loads_bps(now_s)
        assert not loads.keys() - {LINK}
        return loads.get(LINK, 0.0) / FABRIC.links[LINK].rate_bps

    def follow(self, load: Load, seed: int, until_s: float, ports: int = 3) -> list[tuple[float, float]]:
        """What is found after every probe."""
        found = []
        for time_s in probes_s(seed, ports, until_s):
            self.tell(time_s, min(1.0, load(time_s)))
            found.append((time_s, self.found(time_s)))
        return found


def when_found(found: list[tuple[float, float]]) -> float:
    return next((time_s for time_s, share in found if share), float("inf"))


# One second is the time in which agents probe all their ports, three quarters what they mostly take.
@pytest.mark.parametrize("period_s", [0.2, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 15.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_jobs_that_send_in_bursts_are_no_foreign_load(period_s: float, share: float) -> None:
    for seed in range(8):
        link = Link(share, share * period_s)
        begins_s = period_s * seed / 8
        assert when_found(link.follow(bursts(period_s, share, begins_s), seed, 40.0)) == float("inf"), seed


def test_headers_are_none_either() -> None:
    link = Link(0.9, 0.9)
    assert when_found(link.follow(constant(0.9 * 1.014), 1, 40.0)) == float("inf")


def test_a_job_that_has_ended_leaves_none_behind() -> None:
    for seed in range(8):
        link = Link(0.5, 2.0)
        before = link.follow(bursts(4.0, 0.5, begins_s=seed / 2), seed, 30.0)
        # Its last bytes arrive after the Plan without it.
        link.expect(0.0, 0.0)
        after = []
        for time_s in probes_s(seed + 100, 3, 20.0):
            link.tell(30.0 + time_s, float(time_s < 0.1))
            after.append((time_s, link.found(30.0 + time_s)))
        assert when_found([*before, *after]) == float("inf")


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_constant_load_is_found_soon_and_exactly(share: float) -> None:
    for seed in range(8):
        found = Link().follow(constant(share), seed, 20.0)
        assert when_found(found) < 10.0
        assert found[-1][1] == pytest.approx(share)


@pytest.mark.parametrize("period_s", [0.3, 0.75, 1.0, 3.0])
def test_a_load_in_bursts_is_found_within_half_a_minute(period_s: float) -> None:
    last = []
    for seed in range(8):
        found = Link().follow(bursts(period_s, 0.5, period_s * seed / 8), seed, 60.0)
        assert when_found(found) < 30.0
        last += [share for time_s, share in found if time_s > 30.0 and share]
    assert np.mean(last) == pytest.approx(0.5, rel=0.15)


def test_a_load_beside_jobs_is_found() -> None:
    for seed in range(8):
        job = bursts(1.0, 0.3, seed / 8, rate=0.5)
        link = Link(0.15, 0.15)
        found = link.follow(lambda time_s, job=job: job(time_s) + 0.4, seed, 60.0)
        assert when_found(found) < 30.0
        assert found[-1][1] == pytest.approx(0.4, rel=0.3)


def test_one_host_that_lies_moves_nothing() -> None:
    honest, lies = ("h0", "h1", "h2"), "h3"
    for true, told in ((0.0, 1.0), (0.4, 0.0), (0.4, 1.0)):
        link = Link()
        for number in range(60):
            for host in honest:
                link.tell(number / 2, true, host)
            link.tell(number / 2, told, lies)
        assert link.found(30.0) == pytest.approx(true)


def test_of_two_hosts_the_lower_counts() -> None:
    link = Link()
    for number in range(60):
        link.tell(number / 2, 0.5, "h0")
        link.tell(number / 2, 0.0, "h1")
    assert link.found(30.0) == 0.0


def test_no_more_is_believed_than_a_link_carries() -> None:
    link = Link(0.2)
    for number in range(60):
        link.tell(number / 2, 1000.0)
    assert link.found(30.0) == pytest.approx(0.8)


def test_windows_that_are_told_again_count_once() -> None:
    link = Link()
    for _ in range(100):
        link.tell(1.0, 1.0)
        link.tell(1.1, 1.0)
    assert link.found(1.2) == 0.0


def test_what_nobody_tells_of_any_more_is_forgotten() -> None:
    link = Link()
    for number in range(60):
        link.tell(number / 2, 0.5)
    assert link.found(29.5 + STALE_AFTER_S) == pytest.approx(0.5)
    assert link.found(29.6 + STALE_AFTER_S) == 0.0
    # What comes then is new.
    link.tell(40.0, 0.5)
    assert link.found(40.0) == 0.0


def test_the_utilisation_is_the_mean_that_is_sent_whatever_was_expected() -> None:
    for planned in (0.0, 0.3, 2.0):
        link = Link(planned, planned)
        assert np.isnan(link.loads.utilisation(0.0)).all()
        for time_s in np.arange(40) / 4:
            link.tell(time_s, (0.1, 0.5)[int(time_s * 4) % 2])
        found = link.loads.utilisation(10.0)
        assert found[LINK] == pytest.approx(0.3, abs=0.02)
        assert np.isnan(np.delete(found, LINK)).all()
        assert np.isnan(link.loads.utilisation(10.0 + STALE_AFTER_S)).all()


def test_the_utilisation_is_known_from_enough_windows_and_is_the_median_over_hosts() -> None:
    link = Link()
    for number in range(12):
        for host, share in (("h0", 0.2), ("h1", 0.4), ("h2", 1.0)):
            link.tell(number / 2, share, host)
        found = link.loads.utilisation(number / 2)[LINK]
        assert np.isnan(found) == (number < 7) or number in (7, 8, 9)
    assert found == pytest.approx(0.4)
