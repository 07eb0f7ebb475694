"""NCCL's choice: latencies and bandwidths of its tuning model, by hand."""

import pytest

from workloads.combined.nccl import Algorithm, Collective, Group, Protocol, duration_s, fastest, local_s, send_s
from workloads.combined.traffic import double_tree

NVLINK = 450e9
NICS = 400e9
"""Bytes a second of a GPU inside its host, and of a host's eight NICs."""


def test_a_large_all_reduce_inside_a_host_runs_at_the_ring_s_bus_bandwidth() -> None:
    algorithm, taken_s = fastest(Collective.ALL_REDUCE, Group(8, 1, NVLINK), 8e9)
    assert algorithm is Algorithm.RING
    assert taken_s == pytest.approx(2 * 7 / 8 * 8e9 / NVLINK + 8.4e-6 + 14 * 3.4e-6)


# NCCL 2.30, src/graph/tuning.cc, as printed there: tree and ring, each with LL, LL128 and Simple.
BASE_US = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
NVLINK_US = {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)}
NETWORK_US = {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0)}
MOST_LL_GBYTES_PER_S = (141.0, 39.0, 20.4)
CORRECTIONS = """
1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1
1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1
.9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9
"""
PROTOCOLS = ("LL", "LL128", "Simple")


def ring_us(collective: str, hosts: int, on_each: int, gbytes_per_s: float, size: int, protocol: int) -> float:
    """A ring, step by step: whether the rank that has a part passes it on inside its host or to the next one."""
    ranks, taken_us = hosts * on_each, BASE_US["ring"][protocol]
    step_us = NVLINK_US["ring"][protocol]
    if hosts > 1:
        step_us = max(step_us, 3.0 if protocol == 2 else 1.0)
    network_us = NETWORK_US["tree" if on_each == 1 else "ring"][protocol]
    latency_us = taken_us
    for _ in range(2 if collective == "all-reduce" else 1):
        leaves_host = [place % on_each == on_each - 1 for place in range(ranks - 1)]
        latency_us += sum(network_us if leaves else step_us for leaves in leaves_host)
    if collective == "all-reduce" and hosts > 1 and protocol == 2 and size // (16 * ranks) >= 64:
        latency_us *= 1.4
    share = (0.5, 0.92, 1.0)[protocol]
    reached = gbytes_per_s * share
    if protocol == 0:
        reached = min(reached, MOST_LL_GBYTES_PER_S[min(hosts, 3) - 1])
    sent = (2 if collective == "all-reduce" else 1) * (ranks - 1) / ranks * size
    return latency_us + sent / (reached * 1e3)


def tree_us(hosts: int, on_each: int, gbytes_per_s: float, size: int, protocol: int) -> float:
    """Two trees: up and down a chain in each host, and levels of hosts."""
    levels = next(level for level in range(64) if 2 ** (level + 1) > hosts)
    latency_us = BASE_US["tree"][protocol]
    latency_us += 2 * (on_each - 1) * NVLINK_US["tree"][protocol] + 2 * levels * NETWORK_US["tree"][protocol]
    reached = gbytes_per_s * 0.92
    if protocol == 0:
        reached = min(reached / 3.8, MOST_LL_GBYTES_PER_S[min(hosts, 3) - 1])
    if protocol == 1:
        reached *= 7 / 9 if hosts == 1 else 0.9375
    corrections = list(map(float, CORRECTIONS.strip().splitlines()[protocol].split()))
    power = next((power for power in range(len(corrections)) if 64 * 2**power <= size < 128 * 2**power), None)
    reached *= 1 if power is None else corrections[power]
    return latency_us + size / (reached / 2 * 1e3)


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 16, 128])
@pytest.mark.parametrize("on_each", [1, 2, 8])
@pytest.mark.parametrize("gbytes_per_s", [50.0, 450.0])
def test_estimates_and_choices_are_those_of_the_published_tuning(hosts: int, on_each: int, gbytes_per_s: float) -> None:
    if hosts * on_each == 1:
        return
    group = Group(hosts * on_each, hosts, gbytes_per_s * 1e9)
    for size in (1, 63, 64, 4096, 65_536, 10**6, 16 * 2**20, 10**8, 511 * 2**20, 10**9, 10**11):
        expected = {
            (way, name): tree_us(hosts, on_each, gbytes_per_s, size, protocol)
            if way == "tree"
            else ring_us("all-reduce", hosts, on_each, gbytes_per_s, size, protocol)
            for way in ("ring", "tree")
            for protocol, name in enumerate(PROTOCOLS)
        }
        for (way, name), taken_us in expected.items():
            estimate_s = duration_s(Collective.ALL_REDUCE, group, size, Algorithm(way), Protocol(name))
            assert estimate_s == pytest.approx(taken_us * 1e-6), (size, way, name)
        (way, _), shortest_us = min(expected.items(), key=lambda each: each[1])
        algorithm, shortest_s = fastest(Collective.ALL_REDUCE, group, size)
        assert shortest_s == pytest.approx(shortest_us * 1e-6)
        assert algorithm == way or expected[way, _] == pytest.approx(shortest_s * 1e6)
        for protocol, name in enumerate(PROTOCOLS):
            gather_s = duration_s(Collective.ALL_GATHER, group, size, Algorithm.RING, Protocol(name))
            assert gather_s == pytest.approx(ring_us("all-gather", hosts, on_each, gbytes_per_s, size, protocol) * 1e-6)


@pytest.mark.parametrize(
    ("size_bytes", "protocol"),
    [(8e3, Protocol.LOW_LATENCY), (8e6, Protocol.LOW_LATENCY_128), (1e9, Protocol.SIMPLE)],
)
def test_larger_sizes_take_protocols_with_more_bandwidth(size_bytes: float, protocol: Protocol) -> None:
    group = Group(8, 1, NVLINK)
    estimates = {each: duration_s(Collective.ALL_GATHER, group, size_bytes, Algorithm.RING, each) for each in Protocol}
    assert min(estimates, key=lambda each: estimates[each]) is protocol


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


def test_a_send_inside_a_host_has_the_latency_of_one_step_and_the_time_of_its_bytes() -> None:
    assert send_s(1, 450e9) == pytest.approx(6.6e-6 + 0.6e-6, rel=1e-4)
    assert send_s(1e9, 450e9) == pytest.approx(8.4e-6 + 3.4e-6 + 1e9 / 450e9)
