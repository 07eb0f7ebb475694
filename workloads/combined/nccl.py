"""Which algorithm NCCL chooses for a collective, and how long it takes inside a host.

NCCL estimates for every algorithm and protocol a latency and a bandwidth, and takes the fastest. The constants are
those of its tuning model (NCCL 2.19 and later, ``src/graph/tuning.cc``). What it does not depend on here: corrections
for trees of medium size, channels, and the reductions of NVLink switches (NVLS) and of networks (CollNet).
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
    """How data are known to have arrived: by a flag in every 8 bytes, or by a counter for a whole chunk."""

    LOW_LATENCY = "LL"
    SIMPLE = "Simple"


_US = 1e-6
BASE_LATENCY_S: Mapping[tuple[Algorithm, Protocol], float] = {
    (Algorithm.TREE, Protocol.LOW_LATENCY): 6.8 * _US,
    (Algorithm.TREE, Protocol.SIMPLE): 8.4 * _US,
    (Algorithm.RING, Protocol.LOW_LATENCY): 6.6 * _US,
    (Algorithm.RING, Protocol.SIMPLE): 8.4 * _US,
}
"""Latency of a collective without its steps."""

NVLINK_STEP_S: Mapping[tuple[Algorithm, Protocol], float] = {
    (Algorithm.TREE, Protocol.LOW_LATENCY): 0.6 * _US,
    (Algorithm.TREE, Protocol.SIMPLE): 4.0 * _US,
    (Algorithm.RING, Protocol.LOW_LATENCY): 0.6 * _US,
    (Algorithm.RING, Protocol.SIMPLE): 3.4 * _US,
}
"""Latency of a step inside a host."""

NETWORK_STEP_S: Mapping[tuple[Algorithm, Protocol], float] = {
    (Algorithm.TREE, Protocol.LOW_LATENCY): 5.0 * _US,
    (Algorithm.TREE, Protocol.SIMPLE): 14.0 * _US,
    (Algorithm.RING, Protocol.LOW_LATENCY): 2.7 * _US,
    (Algorithm.RING, Protocol.SIMPLE): 14.0 * _US,
}
"""Latency of a step from host to host."""

TREE_BANDWIDTH = 0.92
"""What trees reach of a ring's bandwidth."""
LOW_LATENCY_BANDWIDTH = 0.5
"""What the low-latency protocol leaves of the bandwidth for data."""
LOW_LATENCY_MOST_BYTES_PER_S = {1: 141e9, 2: 45e9, 4: 35e9}
"""What it reaches at most on one host, on two or three, and on more (Hopper)."""


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
    n, hosts = group.num_ranks, group.num_hosts
    passes = 2 if collective is Collective.ALL_REDUCE else 1
    bytes_per_s = group.bytes_per_s
    if protocol is Protocol.LOW_LATENCY:
        limits = sorted(LOW_LATENCY_MOST_BYTES_PER_S.items(), reverse=True)
        most = next(most for least, most in limits if hosts >= least)
        bytes_per_s = min(bytes_per_s * LOW_LATENCY_BANDWIDTH, most)
    key = algorithm, protocol
    if algorithm is Algorithm.TREE:
        steps = 2 * (n // hosts - 1) * NVLINK_STEP_S[key] + 2 * (hosts.bit_length() - 1) * NETWORK_STEP_S[key]
        return BASE_LATENCY_S[key] + steps + 2 * size_bytes / (bytes_per_s * TREE_BANDWIDTH)
    between = passes * (hosts - 1) if hosts > 1 else 0
    steps = (passes * (n - 1) - between) * NVLINK_STEP_S[key] + between * NETWORK_STEP_S[key]
    return BASE_LATENCY_S[key] + steps + passes * (n - 1) / n * size_bytes / bytes_per_s


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
