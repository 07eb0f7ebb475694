"""From counters to paths: what a job sends by which way, where nobody has told its flows.

The switches' ports tell what crosses every link, a job's rules what every NIC sends to every host. A way that fits both
is found by decomposition into paths: whatever crosses a link came by some path that ECMP allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.flow_arrays import FloatArray
from topologies.fabric import Nic, Path
from topologies.paths import Paths
from topologies.routing import Routing

_LEAST_SHARE = 0.01
"""Of what a NIC sends to a host: less is not followed. Of what any sends: that is acknowledgements, say."""


@dataclass(frozen=True, slots=True)
class PathShare:
    """What one iteration sends from a NIC to a NIC by one path."""

    source: Nic
    destination: Nic
    path: Path
    size_bytes: float


def path_shares(
    sent_bytes: Mapping[tuple[Nic, str], float], link_bytes: Mapping[int, float], routing: Routing
) -> tuple[PathShare, ...]:
    """Paths for what NICs send to hosts, the largest first, by the bytes that cross each link behind the first switch.

    Greedily: each time the path of which most is left, over all NICs of the host and all paths that ECMP allows.
    """
    crossed = np.zeros(len(routing.fabric.links))
    crossed[list(link_bytes)] = list(link_bytes.values())
    left = crossed.copy()
    shares: list[PathShare] = []
    least_bytes = _LEAST_SHARE * max(sent_bytes.values(), default=0.0)
    for (source, host), size_bytes in sorted(sent_bytes.items(), key=lambda sent: (-sent[1], sent[0][0].address)):
        if size_bytes > least_bytes:
            nics = routing.fabric.nics[host]
            ways = [(nic, path) for nic in nics for path in routing.candidate_paths(source, nic)]
            shares += _decomposed(source, ways, size_bytes, left, crossed)
    return tuple(shares)


def _decomposed(
    source: Nic, ways: Sequence[tuple[Nic, Path]], size_bytes: float, left: FloatArray, crossed: FloatArray
) -> list[PathShare]:
    """The paths of what one NIC sends to one host, which is taken from what is ``left`` of what has ``crossed`` links.

    Where others were given all of it, that by which most went.
    """
    links = Paths(path for _, path in ways).links[:, 1:]
    found: dict[int, float] = {}
    remaining = size_bytes
    while remaining > _LEAST_SHARE * size_bytes:
        widest, width = _widest(links, left)
        taken = min(remaining, width)
        if taken <= _LEAST_SHARE * size_bytes:
            break
        found[widest] = found.get(widest, 0.0) + taken
        remaining -= taken
        left[list(ways[widest][1][1:])] -= taken
    if not found:
        return [PathShare(source, *ways[_widest(links, crossed)[0]], size_bytes)]
    whole = size_bytes / (size_bytes - remaining)
    return [PathShare(source, *ways[number], taken * whole) for number, taken in found.items()]


def _widest(links: npt.NDArray[np.int32], link_bytes: FloatArray) -> tuple[int, float]:
    """The path by which most fits, by its number, and how much."""
    widths = np.where(links >= 0, link_bytes[links], np.inf).min(axis=1)
    return int(np.argmax(widths)), float(widths.max())


def transfer_s(shares: Sequence[PathShare], routing: Routing) -> float:
    """What the bottleneck link needs for an iteration's bytes (Crux, section 3: t_j), links inside hosts among them."""
    fabric = routing.fabric
    loads_bytes = np.zeros(len(fabric.rates_bps))
    for share in shares:
        loads_bytes[[*share.path, *fabric.host_links_between(share.source, share.destination)]] += share.size_bytes
    return float((loads_bytes * 8 / np.array(fabric.rates_bps)).max(initial=0.0))
