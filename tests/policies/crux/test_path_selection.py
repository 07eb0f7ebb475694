from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given

from policies.crux.path_selection import Congestion, select_paths
from policies.flows import FlowKey
from policies.intensity import demand, most_intense_first
from policies.job import Job
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots
from topologies.fabric import Path


def choose(
    rates_gbps: list[float], *jobs: Job, congestion: Congestion = Congestion.UTILISATION
) -> dict[tuple[str, int], Path]:
    links = make_links(*(rate * GBPS for rate in rates_gbps))
    traffic = select_paths(Snapshot(time_s=0.0, links=links, jobs=jobs), congestion)
    return {(flow.key.job, flow.key.flow): path for flow, path in zip(traffic.flows, traffic.first_paths, strict=True)}


def test_jobs_take_separate_paths() -> None:
    either = ((0,), (1,))
    assert choose([1, 1], make_job("a", [(1e9, either)]), make_job("b", [(1e9, either)])) == {
        ("a", 0): (0,),
        ("b", 0): (1,),
    }


def test_the_more_intense_job_chooses_first() -> None:
    either = ((0,), (1,))
    jobs = make_job("a", [(1e9, either)], work=1.0), make_job("b", [(1e9, either)], work=2.0)
    assert choose([1, 1], *jobs) == {("b", 0): (0,), ("a", 0): (1,)}


@pytest.mark.parametrize("policy", ["crux", "crux-ps-pa"])
def test_links_that_others_load_are_left_to_them_until_other_links_are_as_full(policy: str) -> None:
    """On average a job sends a tenth of what the first link carries, and a fifth of what the second does."""
    either = ((0,), (1,))
    jobs = tuple(make_job(name, [(1e9 / 8, either)], compute_s=1.0, comm_start=0.0) for name in "ab")
    snapshot = Snapshot(0.0, make_links(10 * GBPS, 5 * GBPS), jobs)

    def paths(foreign_loads_bps: dict[int, float]) -> list[Path | None]:
        plan = decide(find_policy(policy), replace(snapshot, foreign_loads_bps=foreign_loads_bps))
        return [plan.flows[FlowKey(job.name, job.flow_groups[0].name, 0)].path for job in jobs]

    assert paths({0: 0.1e9}) == [(0,), (1,)]
    assert paths({0: 1.5e9}) == [(1,), (0,)]
    assert paths({0: 3.5e9}) == [(1,), (1,)]
    assert paths({0: 3e9, 1: 2.5e9}) == [(0,), (0,)]


@pytest.mark.parametrize("congestion", [Congestion.TRANSFER_TIME, Congestion.FLOWS])
def test_only_utilisation_can_be_added_to_what_others_send(congestion: Congestion) -> None:
    either = ((0,), (1,))
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), (make_job("a", [(1e8, either)]),), foreign_loads_bps={0: 0.5e9})
    assert select_paths(snapshot, congestion).first_paths == [(0,)]


@pytest.mark.parametrize("policy", ["crux", "taccl-star", "trainyard"])
@pytest.mark.parametrize("candidates", [((0,), (1,)), ((1,), (0,))])
def test_an_idle_fast_path_is_better_than_an_idle_slow_one(policy: str, candidates: tuple[Path, ...]) -> None:
    job = make_job("a", [(1e9, candidates)])
    plan = decide(find_policy(policy), Snapshot(0.0, make_links(GBPS, 4 * GBPS), (job,)))
    assert plan.flows[FlowKey("a", job.flow_groups[0].name, 0)].path == (1,)


def test_flows_of_one_job_keep_apart() -> None:
    either = ((0,), (1,))
    assert choose([1, 1], make_job("a", [(1e9, either), (1e9, either)])) == {("a", 0): (0,), ("a", 1): (1,)}


def test_utilisation_decides_and_not_bytes() -> None:
    first = make_job("a", [(2e9, ((0,),)), (1e9, ((1,),))], work=9.0)
    assert choose([10, 1], first, make_job("b", [(1e9, ((1,), (0,)))]))[("b", 0)] == (0,)


def test_a_job_loads_its_links_by_its_rate() -> None:
    """The same bytes load a link less where iterations are long."""
    slow = make_job("a", [(1e9, ((0,),))], compute_s=100.0, work=9.0)
    fast = make_job("b", [(1e9, ((1,),))], compute_s=1.0, work=9.0)
    assert choose([1, 1], slow, fast, make_job("c", [(1e9, ((1,), (0,)))]))[("c", 0)] == (0,)


def test_most_loaded_link_goes_before_the_sum() -> None:
    heavy = make_job("a", [(3e9, ((0,),)), (2e9, ((1,),)), (2e9, ((2,),))], work=9.0)
    chosen = choose([1, 1, 1, 1], heavy, make_job("b", [(1e9, ((0, 3), (1, 2)))]))
    assert chosen["b", 0] == (1, 2)


def test_sum_breaks_ties_of_the_most_loaded_link() -> None:
    heavy = make_job("a", [(2e9, ((0,),)), (2e9, ((1,),)), (1e9, ((2,),))], work=9.0)
    chosen = choose([1, 1, 1, 1], heavy, make_job("b", [(1e9, ((0, 2), (1, 3)))]))
    assert chosen["b", 0] == (1, 3)


def test_candidates_of_different_length_are_comparable() -> None:
    first = make_job("a", [(1e9, ((2,),))], work=9.0)
    assert choose([1, 1, 1], first, make_job("b", [(1e9, ((2,), (0, 1)))]))["b", 0] == (0, 1)


def test_job_that_sends_nothing_and_computes_nothing_gets_a_path() -> None:
    assert choose([1], make_job("a", [(0.0, ((0,),))], compute_s=0.0)) == {("a", 0): (0,)}


@pytest.mark.parametrize(
    ("congestion", "path"), [(Congestion.UTILISATION, (0,)), (Congestion.TRANSFER_TIME, (1,)), (Congestion.FLOWS, (2,))]
)
def test_congestion_may_be_measured_in_three_ways(congestion: Congestion, path: Path) -> None:
    """Much at long intervals, less at short ones, and a flow beside two that send next to nothing."""
    placed = (
        make_job("a", [(4e9, ((0,),)), (1.0, ((0,),)), (1.0, ((0,),))], compute_s=1000.0, work=1e9),
        make_job("b", [(2e9, ((1,),)), (1.0, ((1,),))], compute_s=1.0, work=90.0),
        make_job("c", [(3e9, ((2,),))], compute_s=1.0, work=90.0),
    )
    candidates = ((2,), (1,), (0,))
    chosen = choose([1, 1, 1], *placed, make_job("d", [(1e9, candidates)]), congestion=congestion)
    assert chosen["d", 0] == path


def plainly_chosen(snapshot: Snapshot) -> dict[FlowKey, Path]:
    """Flow after flow, with loads in a list; jobs whose intensities differ by rounding go as the policy rounds them."""

    def spread_s(job: Job) -> float:
        seconds = [0.0] * len(snapshot.links)
        for flow in job.flows:
            for link in chain.from_iterable(flow.candidates):
                seconds[link] += flow.size_bytes / len(flow.candidates) * 8 / snapshot.links[link].rate_bps
        return max(seconds)

    def place(job: Job) -> tuple[float, str]:
        rounded = demand(job, snapshot.links.rates_bps, lambda flow: flow.candidates).intensity
        assert rounded == (pytest.approx(job.profile.work / spread_s(job)) if spread_s(job) else None)
        return most_intense_first(rounded, job.name)

    load = [0.0] * len(snapshot.links)
    chosen = {}
    for job in sorted(snapshot.jobs, key=place):
        duration_s = max(job.profile.compute_s, job.profile.compute_s * job.profile.comm_start + spread_s(job))
        for flow in job.flows:
            rate_bps = flow.size_bytes * 8 / duration_s if flow.size_bytes else 0.0
            added = [rate_bps / link.rate_bps for link in snapshot.links]
            path = flow.candidates[0]
            for other in flow.candidates[1:]:
                loads, other_loads = ([load[link] + added[link] for link in each] for each in (path, other))
                is_as_full = max(other_loads) == pytest.approx(max(loads), rel=1e-9, abs=0)
                is_better = sum(other_loads) < sum(loads) * (1 - 1e-9) if is_as_full else max(other_loads) < max(loads)
                path = other if is_better else path
            chosen[flow.key] = path
            for link in path if flow.size_bytes else ():
                load[link] += added[link]
    return chosen


@given(snapshots())
def test_choices_are_those_of_a_plain_search(snapshot: Snapshot) -> None:
    traffic = select_paths(snapshot)
    chosen = {flow.key: path for flow, path in zip(traffic.flows, traffic.first_paths, strict=True)}
    assert chosen == plainly_chosen(snapshot)


@pytest.mark.parametrize("congestion", Congestion)
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_lead_nobody_elsewhere(
    congestion: Congestion, snapshot: Snapshot, power: int
) -> None:
    chosen = select_paths(scaled(snapshot, 2.0**power), congestion).first_paths
    assert chosen == select_paths(snapshot, congestion).first_paths
