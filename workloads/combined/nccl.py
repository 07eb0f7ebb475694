"""Which algorithm NCCL chooses for a collective, and how long it takes inside a host.

NCCL estimates for every algorithm and protocol a latency and a bandwidth, and takes the fastest. Constants and
corrections are those of its tuning model (NCCL 2.30, ``src/graph/tuning.cc``; latencies as since 2.19), for Hopper GPUs
with NVLink, and hosts with Intel processors between which all NICs are used. What it does not depend on here: limits of
single channels, PAT for one GPU a host, and the reductions of NVLink switches (NVLS) and of networks (CollNet).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Collective(StrEnum):
    """A collective among ranks."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"


class Algorithm(StrEnum):
    """How an all-reduce travels: round a ring, or up and down two trees, each for a half."""

    RING = "ring"
    TREE = "tree"


class Protocol(StrEnum):
    """How data are known to have arrived: by a flag in every 8 bytes, in every 128, or by a counter for a chunk."""

    LOW_LATENCY = "LL"
    LOW_LATENCY_128 = "LL128"
    SIMPLE = "Simple"


_US = 1e-6


def _latencies(tree_us: tuple[float, ...], ring_us: tuple[float, ...]) -> Mapping[tuple[Algorithm, Protocol], float]:
    """Return seconds by algorithm and protocol."""
    return {
        (algorithm, protocol): value_us * _US
        for algorithm, of in ((Algorithm.TREE, tree_us), (Algorithm.RING, ring_us))
        for protocol, value_us in zip(Protocol, of, strict=True)
    }


BASE_LATENCY_S = _latencies((6.8, 14.0, 8.4), (6.6, 14.0, 8.4))
"""Latency of a collective without its steps."""
NVLINK_STEP_S = _latencies((0.6, 1.25, 4.0), (0.6, 1.9, 3.4))
"""Latency of a step inside a host."""
NETWORK_STEP_S = _latencies((5.0, 8.5, 14.0), (2.7, 4.0, 14.0))
"""Latency of a step from host to host."""
LAUNCH_STEP_S: Mapping[Protocol, float] = {
    Protocol.LOW_LATENCY: 1.0 * _US,
    Protocol.LOW_LATENCY_128: 1.0 * _US,
    Protocol.SIMPLE: 3.0 * _US,
}
"""The least that any step of a ring over hosts takes, because the network's sends are launched for all."""

TREE_BANDWIDTH = 0.92
"""What trees reach of a ring's bandwidth."""
LOW_LATENCY_BANDWIDTH: Mapping[Algorithm, float] = {Algorithm.TREE: 1 / 3.8, Algorithm.RING: 0.5}
"""What protocol LL leaves of the bandwidth for data."""
LOW_LATENCY_MOST_BYTES_PER_S = {1: 141e9, 2: 39e9, 3: 20.4e9}
"""What it reaches at most on one host, on two, and on three or more."""
RING_128_BANDWIDTH, HOST_TREE_128_BANDWIDTH, TREE_128_BANDWIDTH = 0.92, 7 / 9, 120 / 128
"""What protocol LL128 leaves to a ring, to trees inside a host, and to trees over hosts."""
RING_PLATEAU, RING_PLATEAU_BYTES = 1.4, 64 * 16
"""What a ring's latency over hosts, with protocol Simple, grows by from so many bytes for each rank (16 channels)."""

TREE_CORRECTION: Mapping[Protocol, tuple[float, ...]] = {
    Protocol.LOW_LATENCY: (
        *(1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5),
        *(0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    ),
    Protocol.LOW_LATENCY_128: (
        *(1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6),
        *(0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    ),
    Protocol.SIMPLE: (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
    ),
}
"""What trees reach of their bandwidth with 64 bytes and more, by powers of two, up to 512 MB."""


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks in a collective: their number, on how many hosts, and the bandwidth of a rank in bytes a second."""

    num_ranks: int
    num_hosts: int
    bytes_per_s: float


def duration_s(
    collective: Collective, group: Group, size_bytes: float, algorithm: Algorithm, protocol: Protocol
) -> float:
    """Return NCCL's estimate for a collective of ``size_bytes``, gathered or reduced in all."""
    if algorithm is Algorithm.TREE:
        latency_s, bytes_per_s = _tree(group, size_bytes, protocol)
        return latency_s + 2 * size_bytes / bytes_per_s
    n = group.num_ranks
    passes = 2 if collective is Collective.ALL_REDUCE else 1
    latency_s = _ring_latency_s(group, passes, protocol)
    has_plateau = passes == 2 and group.num_hosts > 1 and protocol is Protocol.SIMPLE
    if has_plateau and size_bytes >= RING_PLATEAU_BYTES * n:
        latency_s *= RING_PLATEAU
    return latency_s + passes * (n - 1) / n * size_bytes / _ring_bytes_per_s(group, protocol)


def _tree(group: Group, size_bytes: float, protocol: Protocol) -> tuple[float, float]:
    """Return the latency of trees, and their bandwidth for so many bytes."""
    key = Algorithm.TREE, protocol
    inside = 2 * (group.num_ranks // group.num_hosts - 1)
    between = 2 * (group.num_hosts.bit_length() - 1)
    latency_s = BASE_LATENCY_S[key] + inside * NVLINK_STEP_S[key] + between * NETWORK_STEP_S[key]
    bytes_per_s = group.bytes_per_s * TREE_BANDWIDTH
    if protocol is Protocol.LOW_LATENCY:
        bytes_per_s = min(bytes_per_s * LOW_LATENCY_BANDWIDTH[Algorithm.TREE], _low_latency_most(group))
    elif protocol is Protocol.LOW_LATENCY_128:
        bytes_per_s *= HOST_TREE_128_BANDWIDTH if group.num_hosts == 1 else TREE_128_BANDWIDTH
    power = (int(size_bytes) // 64).bit_length() - 1
    corrections = TREE_CORRECTION[protocol]
    return latency_s, bytes_per_s * (corrections[power] if 0 <= power < len(corrections) else 1)


def _ring_latency_s(group: Group, passes: int, protocol: Protocol) -> float:
    """Return the latency of a ring: each rank's part passes all others, in each pass."""
    key = Algorithm.RING, protocol
    num_steps, hosts = passes * (group.num_ranks - 1), group.num_hosts
    if hosts == 1:
        return BASE_LATENCY_S[key] + num_steps * NVLINK_STEP_S[key]
    between = passes * (hosts - 1)
    # With one rank on each host nothing hides the network's latency.
    step_s = NETWORK_STEP_S[Algorithm.TREE if group.num_ranks == hosts else Algorithm.RING, protocol]
    inside_s = max(NVLINK_STEP_S[key], LAUNCH_STEP_S[protocol])
    return BASE_LATENCY_S[key] + (num_steps - between) * inside_s + between * step_s


def _ring_bytes_per_s(group: Group, protocol: Protocol) -> float:
    match protocol:
        case Protocol.LOW_LATENCY:
            return min(group.bytes_per_s * LOW_LATENCY_BANDWIDTH[Algorithm.RING], _low_latency_most(group))
        case Protocol.LOW_LATENCY_128:
            return group.bytes_per_s * RING_128_BANDWIDTH
    return group.bytes_per_s


def _low_latency_most(group: Group) -> float:
    return LOW_LATENCY_MOST_BYTES_PER_S[min(group.num_hosts, 3)]


def fastest(collective: Collective, group: Group, size_bytes: float) -> tuple[Algorithm, float]:
    """Return the algorithm that NCCL would choose, and its duration. Only an all-reduce has trees to choose."""
    algorithms = tuple(Algorithm) if collective is Collective.ALL_REDUCE else (Algorithm.RING,)
    estimates = (
        (duration_s(collective, group, size_bytes, algorithm, protocol), algorithm)
        for algorithm, protocol in product(algorithms, Protocol)
    )
    shortest_s, algorithm = min(estimates, key=lambda estimate: estimate[0])
    return algorithm, shortest_s


def local_s(collective: Collective, num_ranks: int, size_bytes: float, bytes_per_s: float) -> float:
    """Return how long a collective takes inside a host; nothing where a rank is alone or has nothing to send."""
    if num_ranks == 1 or not size_bytes:
        return 0.0
    return fastest(collective, Group(num_ranks, 1, bytes_per_s), size_bytes)[1]


def send_s(size_bytes: float, bytes_per_s: float) -> float:
    """Return how long a rank takes to send to another of its host: one step of a ring of two, with all the bytes."""
    return fastest(Collective.ALL_GATHER, Group(2, 1, bytes_per_s), 2 * size_bytes)[1]
