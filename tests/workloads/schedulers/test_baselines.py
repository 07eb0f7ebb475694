import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.schedulers.builders import CLUSTER, ask, rack_of, requests, state_without, states
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.cluster import ClusterState, GpuRequest, Place
from workloads.schedulers.hived import place_in_cells

PLACEMENTS = [place_by_affinity, place_in_cells, RandomPlacement(1)]


@pytest.mark.parametrize("place", PLACEMENTS)
@given(state=states, request_=requests)
def test_what_is_placed_was_free_and_is_what_was_asked_for(
    place: Place, state: ClusterState, request_: GpuRequest
) -> None:
    allocation = place(state, request_)
    assert (allocation is None) == (
        len(state.hosts_with_free(CLUSTER.hosts, request_.gpus_per_host)) < request_.num_hosts
    )
    if allocation is not None:
        assert [len(gpus) for gpus in allocation.values()] == [request_.gpus_per_host] * request_.num_hosts
        assert state.take(allocation).num_free == state.num_free - request_.gpus
        assert place(state, request_) == allocation


@given(state=states, num_hosts=st.integers(1, 4), gpus=st.integers(1, 8))
def test_affinity_and_cells_leave_a_rack_only_when_they_must(state: ClusterState, num_hosts: int, gpus: int) -> None:
    room = [len(state.hosts_with_free(rack, gpus)) for rack in CLUSTER.racks]
    for place in (place_by_affinity, place_in_cells):
        allocation = place(state, ask(num_hosts, gpus))
        if max(room) >= num_hosts:
            assert allocation is not None
            assert len({rack_of(host) for host in allocation}) == 1


@pytest.mark.parametrize(
    ("num_hosts", "gpus", "hosts"),
    [
        (1, 2, "b0"),  # the fullest host that suffices
        (1, 8, "a0"),  # of whole hosts one in the rack that has fewest
        (2, 8, "a0 a1"),  # the rack that it fills
        (3, 8, "c0 c1 c2"),
        (5, 8, "c0 c1 c2 c3 a0"),  # the largest first
    ],
)
def test_affinity_by_hand(num_hosts: int, gpus: int, hosts: str) -> None:
    state = state_without(b0=(0, 1, 2, 3, 4, 5), c0=())
    allocation = place_by_affinity(state, ask(num_hosts, gpus))
    assert allocation is not None
    assert " ".join(allocation) == hosts


def test_random_placements_differ_by_seed_and_name_and_reach_every_host() -> None:
    state = ClusterState.empty(CLUSTER)
    reached = {host for seed in range(60) for host in RandomPlacement(seed)(state, ask(1, 8)) or ()}
    assert reached == set(CLUSTER.hosts)
    placed = {tuple(RandomPlacement(1)(state, ask(3, 2, name)) or ()) for name in "abcdef"}
    assert len(placed) > 1
