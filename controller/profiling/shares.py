"""Derive from counters over which paths a job sends whose flows are not known.

The port counters of switches show what crosses every link, the job's rules what every NIC sends to every host. A
decomposition into paths fits both: whatever crosses a link came by some path that ECMP allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.arrays import FloatArray
from topologies.fabric import Nic, Path
from topologies.paths import Paths
from topologies.routing import Routing

_LEAST_SHARE = 0.01
"""Of what a NIC sends to a host, less is not followed further. Of what the busiest NIC sends, less is ignored, as it is
acknowledgements and the like."""


@dataclass(frozen=True, slots=True)
class PathShare:
    """Bytes that one iteration sends from a NIC to a NIC by one path."""

    source: Nic
    destination: Nic
    path: Path
    size_bytes: float


def path_shares(
    sent_bytes: Mapping[tuple[Nic, str], float], link_bytes: Mapping[int, float], routing: Routing
) -> tuple[PathShare, ...]:
    """Find paths for what NICs send to hosts, by the bytes that cross each link behind the first switch.

    The search is greedy, the largest traffic first: it takes the widest path that is left, over all NICs of the host
    and all paths that ECMP allows.
    """
    crossed = np.zeros(len(routing.fabric.links))
    crossed[list(link_bytes)] = list(link_bytes.values())
    left = crossed.copy()
    shares: list[PathShare] = []
    least_bytes = _LEAST_SHARE * max(sent_bytes.values(), default=0.0)
    for (source, host), size_bytes in sorted(sent_bytes.items(), key=lambda sent: (-sent[1], sent[0][0].address)):
        if size_bytes > least_bytes:
            nics = routing.fabric.nics[host]
            options = [(nic, path) for nic in nics for path in routing.candidate_paths(source, nic)]
            shares += _decomposed(source, options, size_bytes, left, crossed)
    return tuple(shares)


def _decomposed(
    source: Nic, options: Sequence[tuple[Nic, Path]], size_bytes: float, left: FloatArray, crossed: FloatArray
) -> list[PathShare]:
    """Find the paths of what one NIC sends to one host, and take it from what is ``left`` of what ``crossed`` links.

    If nothing is left on any path, it is the path that most crossed.
    """
    links = Paths(path for _, path in options).links[:, 1:]
    found: dict[int, float] = {}
    remaining = size_bytes
    while remaining > _LEAST_SHARE * size_bytes:
        widest, width = _widest(links, left)
        taken = min(remaining, width)
        if taken <= _LEAST_SHARE * size_bytes:
            break
        found[widest] = found.get(widest, 0.0) + taken
        remaining -= taken
        left[list(options[widest][1][1:])] -= taken
    if not found:
        return [PathShare(source, *options[_widest(links, crossed)[0]], size_bytes)]
    whole = size_bytes / (size_bytes - remaining)
    return [PathShare(source, *options[number], taken * whole) for number, taken in found.items()]


def _widest(links: npt.NDArray[np.int32], link_bytes: FloatArray) -> tuple[int, float]:
    """Return the number of the widest path, and its width."""
    widths = np.where(links >= 0, link_bytes[links], np.inf).min(axis=1)
    return int(np.argmax(widths)), float(widths.max())


def transfer_s(shares: Sequence[PathShare], routing: Routing) -> float:
    """Return how long the bottleneck link needs for an iteration's bytes (t_j in Crux, section 3), inside hosts too."""
    fabric = routing.fabric
    loads_bytes = np.zeros(len(fabric.rates_bps))
    for share in shares:
        loads_bytes[[*share.path, *fabric.host_links_between(share.source, share.destination)]] += share.size_bytes
    return float((loads_bytes * 8 / np.array(fabric.rates_bps)).max(initial=0.0))
