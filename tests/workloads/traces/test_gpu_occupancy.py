"""GPU occupancy and offered load, computed by hand."""

import pytest

from tests.experiments.traces.jobs import DUMBBELL, on_hosts, simulated
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.schedulers.cluster import Cluster
from workloads.traces.gpu_occupancy import Occupancy, busiest_window, gpu_occupancy
from workloads.traces.offered_load import OfferedLoad

SECOND_BYTES = 12.5e9
"""Bytes that the bottleneck carries in a second."""
ACROSS = {"a": ("h0", "h2"), "b": ("h1", "h3"), "c": ("h1",)}
ROUTING = Routing(DUMBBELL, hash_multipliers(DUMBBELL.switches, 1))


def two_and_one() -> tuple[Occupancy, ...]:
    """Two jobs that send for half of their isolated 2 s, from 0 to 200 s and from 100 to 300 s, and one on one host."""
    jobs = [
        simulated("a", 1.0, SECOND_BYTES, 2.0, 100),
        simulated("b", 1.0, SECOND_BYTES, 2.0, 100, arrival_s=100.0),
        simulated("c", 1.0, SECOND_BYTES, 1.0, 100, arrival_s=250.0, num_hosts=1),
    ]
    return gpu_occupancy(jobs, Cluster.of_fabric(DUMBBELL), on_hosts(ACROSS))


def test_jobs_stay_as_long_as_they_were_logged_to() -> None:
    assert [(stay.job.request.name, stay.from_s, stay.to_s) for stay in two_and_one()] == [
        ("a", 0.0, 200.0),
        ("b", 100.0, 300.0),
        ("c", 300.0, 400.0),
    ]


def test_the_busiest_part_is_that_of_jobs_that_send() -> None:
    part = busiest_window(two_and_one(), 100.0)
    assert [(stay.job.request.name, stay.from_s, stay.to_s) for stay in part] == [("a", 0.0, 100.0), ("b", 0.0, 100.0)]
    whole = busiest_window(two_and_one(), 1000.0)
    assert whole == two_and_one()
    assert busiest_window((), 100.0) == ()


def test_the_load_is_the_mean_over_time_of_the_hottest_link() -> None:
    """Each isolated job uses the cable half of the time; both are present for a third of it."""
    offered = OfferedLoad(two_and_one(), ROUTING)
    assert offered.at(1.0) == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert offered.alone_s(2.0).tolist() == pytest.approx([3.0, 3.0])
    assert offered.at(2.0) == pytest.approx(4 / 3 * 2 / 3)
    assert offered.factor(4 / 3 * 2 / 3) == pytest.approx(2.0, rel=1e-4)
    with pytest.raises(
        ValueError, match=r"load 1.5: however much jobs send, the hottest link is offered less than 1.33"
    ):
        offered.factor(1.5)


def test_the_bound_is_that_of_the_jobs_that_are_there() -> None:
    """While both are present and send twice as much, the cable carries three quarters of the demand."""
    offered = OfferedLoad(two_and_one(), ROUTING)
    assert offered.gpu_s == 2 * 200.0 * 16
    assert offered.ideal_gpu_s(2.0) == pytest.approx(16 * 400 / 3)
    assert offered.most_gpu_s(2.0) == pytest.approx(16 * (200 / 3 + 200 / 3 * 3 / 4))
    assert offered.most_gpu_s(1.0) == offered.ideal_gpu_s(1.0) == pytest.approx(16 * 200)
