import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.schedulers.builders import CLUSTER, ask, state_without
from topologies.specification import ClosSpecification
from workloads.schedulers.cluster import Cluster, ClusterState, split_over_hosts


@pytest.mark.parametrize(("gpus", "shape"), [(1, (1, 1)), (7, (1, 7)), (8, (1, 8)), (12, (2, 6)), (60, (10, 6))])
def test_hosts_of_a_job_have_as_many_gpus_each_as_can_be(gpus: int, shape: tuple[int, int]) -> None:
    assert split_over_hosts(gpus, 8) == shape


@given(st.integers(1, 700), st.integers(1, 16))
def test_a_shape_has_all_the_gpus(gpus: int, gpus_per_host: int) -> None:
    num_hosts, on_each = split_over_hosts(gpus, gpus_per_host)
    assert num_hosts * on_each == gpus
    assert on_each <= gpus_per_host


def test_nobody_asks_for_no_gpus() -> None:
    with pytest.raises(ValueError, match="at least 1 GPU, got 0"):
        split_over_hosts(0, 8)


def test_hosts_at_one_switch_are_a_rack() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=1, hosts_per_tor=2, gpus_per_host=4, host_link_gbps=1, uplink_gbps=1
    ).build()
    assert Cluster.of_fabric(fabric) == Cluster(((("h0", "h1"), ("h2", "h3")),), 4)


def test_gpus_are_taken_and_come_back() -> None:
    whole = ClusterState.empty(CLUSTER)
    taken = whole.take({"a0": (1, 3)})
    assert taken.free["a0"] == (0, 2, 4, 5, 6, 7)
    assert (taken.num_free, taken.give_back({"a0": (1, 3)})) == (70, whole)


def test_no_gpu_is_taken_twice_or_given_back_twice() -> None:
    state = state_without(a0=(1,))
    with pytest.raises(ValueError, match="a0: GPUs"):
        state.take({"a0": (0, 1)})
    with pytest.raises(ValueError, match="a0: GPUs"):
        state.give_back({"a0": (0,)})


def test_what_the_whole_cluster_cannot_hold() -> None:
    assert CLUSTER.fits(ask(9, 8))
    assert not CLUSTER.fits(ask(10, 1))
    assert not CLUSTER.fits(ask(1, 9))
