import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.schedulers.builders import CLUSTER, ask
from workloads.schedulers.admission import Admit, admit_in_groups, admit_in_order
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.cluster import Cluster, ClusterState, GpuRequest
from workloads.schedulers.hived import place_in_cells
from workloads.schedulers.schedule import Schedule, schedule

TWO_HOSTS = Cluster(((("h0", "h1"),),), gpus_per_host=8)
BY_AFFINITY = admit_in_order(place_by_affinity)


def starts(done: Schedule) -> dict[str, float]:
    return {run.request.name: run.start_s for run in done.runs}


def test_who_finds_the_cluster_full_waits_and_nobody_overtakes() -> None:
    done = schedule(
        [
            ask(1, 8, "a", arrival_s=0.0, run_time_s=10.0),
            ask(2, 8, "b", arrival_s=1.0, run_time_s=5.0),
            ask(1, 8, "c", arrival_s=2.0, run_time_s=1.0),  # there is room at once, but b came first
        ],
        TWO_HOSTS,
        BY_AFFINITY,
    )
    assert starts(done) == {"a": 0.0, "b": 10.0, "c": 15.0}


def test_who_ends_makes_room_for_who_comes_at_the_same_moment() -> None:
    done = schedule(
        [ask(2, 8, "a", run_time_s=10.0), ask(2, 8, "b", arrival_s=10.0, run_time_s=1.0)], TWO_HOSTS, BY_AFFINITY
    )
    assert starts(done) == {"a": 0.0, "b": 10.0}


def test_what_never_fits_is_told_and_holds_nobody_up() -> None:
    done = schedule([ask(3, 8, "large"), ask(1, 8, "a", run_time_s=1.0)], TWO_HOSTS, BY_AFFINITY)
    assert [request.name for request in done.impossible] == ["large"]
    assert starts(done) == {"a": 0.0}


def test_a_group_shares_gpus_until_its_last_job_ends() -> None:
    busy = [ask(1, 8, "busy", run_time_s=4.0)]
    group = [
        ask(1, 8, "computes", arrival_s=1.0, run_time_s=9.0, stages_s=(3.0, 1.0)),
        ask(1, 8, "sends", arrival_s=1.0, run_time_s=5.0, stages_s=(1.0, 3.0)),
    ]
    after = [ask(2, 8, "after", arrival_s=2.0, run_time_s=1.0, stages_s=(1.0, 1.0))]
    done = schedule(busy + group + after, TWO_HOSTS, admit_in_groups(place_by_affinity))
    runs = {run.request.name: run for run in done.runs}
    assert runs["computes"].allocation == runs["sends"].allocation
    assert runs["sends"].shares_with == ("computes",)
    assert starts(done) == {"busy": 0.0, "computes": 1.0, "sends": 1.0, "after": 10.0}


jobs = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 8), st.integers(0, 20), st.integers(1, 9), st.integers(1, 3)),
    max_size=20,
).map(
    lambda drawn: [
        ask(hosts, gpus, f"{number}", arrival_s=float(arrival), run_time_s=float(run), stages_s=(1.0, float(sends)))
        for number, (hosts, gpus, arrival, run, sends) in enumerate(drawn)
    ]
)


@pytest.mark.parametrize(
    "admit",
    [BY_AFFINITY, admit_in_order(place_in_cells), admit_in_order(RandomPlacement(3)), admit_in_groups(place_in_cells)],
)
@given(requests=jobs)
def test_everybody_runs_and_no_gpu_has_two_jobs_that_do_not_share(admit: Admit, requests: list[GpuRequest]) -> None:
    done = schedule(requests, CLUSTER, admit)
    assert sorted(starts(done)) == sorted(request.name for request in requests)
    assert all(run.start_s >= run.request.arrival_s for run in done.runs)
    for position, run in enumerate(done.runs):
        for other in done.runs[position + 1 :]:
            if other.start_s < run.end_s and other.request.name not in run.shares_with:
                assert not any(set(gpus) & set(other.allocation.get(host, ())) for host, gpus in run.allocation.items())


@given(requests=jobs)
def test_jobs_begin_in_the_order_in_which_they_came(requests: list[GpuRequest]) -> None:
    began = [run.request for run in schedule(requests, CLUSTER, BY_AFFINITY).runs]
    assert began == sorted(requests, key=lambda request: request.arrival_s)


@given(requests=jobs)
def test_the_first_who_waits_has_no_room(requests: list[GpuRequest]) -> None:
    admission = BY_AFFINITY(ClusterState.empty(CLUSTER), requests)
    assert [start.members[0] for start in admission.starts] + list(admission.waiting) == requests
    if admission.waiting:
        assert place_by_affinity(admission.state, admission.waiting[0]) is None
