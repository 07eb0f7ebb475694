from hypothesis import given

from controller.policy.path_selection import select_paths
from controller.policy.snapshot import Job, Snapshot
from tests.policy.builders import GBPS, make_job, make_links, snapshots
from topologies.fabric import Path


def choose(rates_gbps: list[float], *jobs: Job) -> dict[tuple[str, int], Path]:
    links = make_links(*(rate * GBPS for rate in rates_gbps))
    chosen = select_paths(Snapshot(time_s=0.0, links=links, jobs=jobs))
    return {(key.job, key.flow): path for key, path in chosen.items()}


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


@given(snapshots())
def test_every_flow_gets_one_of_its_candidates(snapshot: Snapshot) -> None:
    chosen = select_paths(snapshot)
    assert chosen.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
    assert all(chosen[flow.key] in flow.candidates for job in snapshot.jobs for flow in job.flows)
