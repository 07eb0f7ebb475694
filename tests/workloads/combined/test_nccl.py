"""NCCL's choice: latencies and bandwidths of its tuning model, by hand."""

import pytest

from workloads.combined.nccl import Algorithm, Collective, Group, Protocol, duration_s, fastest, local_s
from workloads.combined.traffic import double_tree

NVLINK = 450e9
NICS = 400e9
"""Bytes a second of a GPU inside its host, and of a host's eight NICs."""


def test_a_large_all_reduce_inside_a_host_runs_at_the_ring_s_bus_bandwidth() -> None:
    algorithm, taken_s = fastest(Collective.ALL_REDUCE, Group(8, 1, NVLINK), 8e9)
    assert algorithm is Algorithm.RING
    assert taken_s == pytest.approx(2 * 7 / 8 * 8e9 / NVLINK + 8.4e-6 + 14 * 3.4e-6)


@pytest.mark.parametrize("hosts", [2, 16, 128])
def test_latency_of_trees_grows_with_the_logarithm_of_the_hosts(hosts: int) -> None:
    group = Group(8 * hosts, hosts, NICS)
    tree, ring = (
        duration_s(Collective.ALL_REDUCE, group, 0, algorithm, Protocol.LOW_LATENCY)
        for algorithm in (Algorithm.TREE, Algorithm.RING)
    )
    assert tree == pytest.approx((6.8 + 2 * 7 * 0.6 + 2 * (hosts.bit_length() - 1) * 5.0) * 1e-6)
    between = 2 * (hosts - 1)
    assert ring == pytest.approx((6.6 + (2 * (8 * hosts - 1) - between) * 0.6 + between * 2.7) * 1e-6)


@pytest.mark.parametrize(
    ("hosts", "size_bytes", "algorithm"),
    [
        (4, 64e3, Algorithm.TREE),
        (64, 64e3, Algorithm.TREE),
        (64, 64e6, Algorithm.TREE),
        (4, 16e9, Algorithm.RING),
        (64, 64e9, Algorithm.RING),
    ],
)
def test_trees_win_where_latency_does(hosts: int, size_bytes: float, algorithm: Algorithm) -> None:
    assert fastest(Collective.ALL_REDUCE, Group(8 * hosts, hosts, NICS), size_bytes)[0] is algorithm


def test_the_size_up_to_which_trees_win_grows_with_the_hosts() -> None:
    sizes = [2.0**power for power in range(10, 38)]
    most = [
        max(size for size in sizes if fastest(Collective.ALL_REDUCE, Group(8 * h, h, NICS), size)[0] is Algorithm.TREE)
        for h in (4, 16, 64, 256)
    ]
    assert most == sorted(set(most))


def test_other_collectives_have_rings_alone() -> None:
    assert fastest(Collective.ALL_GATHER, Group(512, 64, NICS), 1e3)[0] is Algorithm.RING


def test_nothing_takes_no_time() -> None:
    assert local_s(Collective.ALL_REDUCE, 1, 1e9, NVLINK) == local_s(Collective.ALL_REDUCE, 8, 0, NVLINK) == 0


@pytest.mark.parametrize("hosts", range(2, 34))
def test_both_trees_reach_all_hosts_and_load_them_alike(hosts: int) -> None:
    edges = list(double_tree(hosts))
    assert len(edges) == 2 * (hosts - 1)
    children: dict[int, list[int]] = {}
    for child, parent in edges:
        children.setdefault(parent, []).append(child)
    for tree in (edges[::2], edges[1::2]):
        (root,) = set(range(hosts)) - {child for child, _ in tree}
        reached, above = {root}, {root}
        while above:
            above = {child for child, parent in tree if parent in above}
            reached |= above
        assert reached == set(range(hosts))
    # Each host sends half of the bytes to its parents and to each child: at most a ring's 2 of all bytes, in all.
    assert max(len(of) for of in children.values()) <= 3
