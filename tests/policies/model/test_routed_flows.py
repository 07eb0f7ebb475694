"""Merged flows play as separate ones do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from policies.model.alone import alone_s
from policies.model.bundles import Bundles
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows, first_link
from policies.model.tiers import places_on_hops, tiers_and_places
from policies.rates.network import Network
from policies.snapshot import Snapshot
from policies.task_graph import Transfer
from tests.policies.builders import GBPS, make_job, snapshots


def separate_ends_s(snapshot: Snapshot, levels: list[int], until_s: float) -> list[list[float]]:
    """The ends of iterations, every flow by itself and on every link that it crosses."""
    jobs = snapshot.jobs
    flows, num_bundles, level_of, order_of = [], [], [], []
    for order, (level, job) in enumerate(zip(levels, jobs, strict=True)):
        for task in job.played_graph.tasks:
            if isinstance(task, Transfer):
                sent = [job.flows[number] for number in task.flows if job.flows[number].sends]
                flows += sent
                num_bundles.append(len(sent))
                level_of += [level] * len(sent)
                order_of += [order] * len(sent)
    tiers, places = tiers_and_places(
        np.array(level_of, dtype=np.int64),
        np.array(order_of, dtype=np.int64),
        np.array([first_link(flow) for flow in flows], dtype=np.int64),
    )
    none = np.zeros(len(flows), dtype=np.int64)
    num_outside = np.array([len(flow.hashed_path) for flow in flows], dtype=np.int64)
    num_hops = num_outside + np.array([len(flow.host_links) for flow in flows], dtype=np.int64)
    paths = [(*flow.hashed_path, *flow.host_links) for flow in flows]
    network = Network.of(snapshot.links.rates_bps, paths, places_on_hops(places, num_hops, num_outside))
    playing = PlayingJobs(
        [job.played_graph for job in jobs],
        np.zeros(len(jobs)),
        np.array(num_bundles, dtype=np.int64),
        np.array([flow.size_bytes for flow in flows]),
        Bundles(network, np.ones(len(flows)), tiers, none, none),
    )
    playing.run(until_s)
    return [playing.ends_s(job)[:5].tolist() for job in range(len(jobs))]


@given(snapshot=snapshots().filter(lambda made: made.jobs and all(job.profile.compute_s > 0 for job in made.jobs)))
def test_bundles_and_fewer_links_change_nothing(snapshot: Snapshot) -> None:
    jobs = snapshot.jobs
    levels = [number % 3 for number in range(len(jobs))]  # and orders inside a level
    routed = RoutedFlows.of(jobs, [[flow.hashed_path for flow in job.flows] for job in jobs], snapshot.links.rates_bps)
    of_groups = np.array([level for level, job in zip(levels, jobs, strict=True) for _ in job.flow_groups], np.int64)
    orders = np.array([number for number, job in enumerate(jobs) for _ in job.flow_groups], np.int64)
    playing = PlayingJobs(
        [job.played_graph for job in jobs],
        np.zeros(len(jobs)),
        routed.num_bundles,
        routed.size_bytes,
        routed.bundles(of_groups, orders),
    )
    playing.run(10.0)
    found = [playing.ends_s(job)[:5].tolist() for job in range(len(jobs))]
    for one, other in zip(found, separate_ends_s(snapshot, levels, 10.0), strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_classes_separate_flows_of_one_transfer() -> None:
    job = make_job("a", [(1e9 / 8, ((0,),)), (1e9 / 8, ((0,),))], comm_start=0.0)
    paths = [[flow.hashed_path for flow in job.flows]]
    rates_bps = np.array([GBPS])
    assert len(RoutedFlows.of([job], paths, rates_bps).size_bytes) == 1
    apart = RoutedFlows.of([job], paths, rates_bps, classes=[[0, 1]])
    assert len(apart.size_bytes) == 2
    levels = np.array([7, 6])
    assert alone_s(job, apart, levels, 7 - levels) == pytest.approx(2.0)


def test_an_iteration_alone_lasts_as_long_as_its_bottleneck_lets_it() -> None:
    job = make_job("a", [(3e9 / 8, ((0, 1),))], compute_s=1.0, comm_start=0.5)
    paths = [[flow.hashed_path for flow in job.flows]]
    routed = RoutedFlows.of([job], paths, np.array([2 * GBPS, GBPS]))
    none = np.zeros(1, dtype=np.int64)
    assert alone_s(job, routed, none, none) == pytest.approx(3.5)


def test_links_that_another_one_makes_loose_are_left_out() -> None:
    """Of links 0 and 1 of one flow each, link 2 of both makes only the faster one loose."""
    job = make_job("a", [(1e9, ((0, 2),)), (1e9, ((1, 2),))])
    paths = [[flow.hashed_path for flow in job.flows]]
    network = RoutedFlows.of([job], paths, np.array([4 * GBPS, GBPS, 2 * GBPS])).network
    assert network.capacities_bps.tolist() == [2 * GBPS, GBPS]
    assert [network.links[first:last].tolist() for first, last in pairwise(network.starts.tolist())] == [[0], [0, 1]]


def test_bytes_arrive_after_the_delays_of_all_links() -> None:
    job = make_job("a", [(1e9 / 8, ((0, 1, 2),))], compute_s=1.0, comm_start=1.0)
    paths = [[flow.hashed_path for flow in job.flows]]
    routed = RoutedFlows.of([job], paths, np.full(3, GBPS), delays_s=np.array([0.1, 0.2, 0.25]))
    none = np.zeros(1, dtype=np.int64)
    assert routed.latency_ps.tolist() == [550_000_000_000]
    assert alone_s(job, routed, none, none) == pytest.approx(2.55)
