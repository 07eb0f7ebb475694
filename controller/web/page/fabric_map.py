"""Where the page draws nodes: hosts at the bottom, and above them switches by their distance from hosts.

A pure function. Inside a tier, nodes stand where their neighbours are on average (Sugiyama, Tagawa and Toda, "Methods
for visual understanding of hierarchical system structures", 1981), so that pods stay together and few cables cross.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from topologies.fabric import Fabric

MOST_CABLES = 4_000
"""Cables that are drawn. A larger fabric is drawn without hosts, and a still larger one without its last cables."""
_SWEEPS = 2


@dataclass(frozen=True, slots=True)
class FabricMap:
    """What is drawn.

    Attributes:
        tiers: The nodes of each tier, hosts first, from left to right.
        cables: The numbers of the cables between them.
        hosts_left_out: How many hosts have no room.
    """

    tiers: tuple[tuple[str, ...], ...]
    cables: tuple[int, ...]
    hosts_left_out: int


def fabric_map(fabric: Fabric) -> FabricMap:
    """Lay out a fabric."""
    shows_hosts = len(fabric.cables) <= MOST_CABLES
    tiers = _ordered(_tiers(fabric), _neighbours(fabric))
    if not shows_hosts:
        tiers[0] = ()
    shown = set().union(*tiers)
    cables = [number for number, cable in enumerate(fabric.cables) if shown.issuperset(cable.ends)]
    return FabricMap(tuple(tiers), tuple(cables[:MOST_CABLES]), 0 if shows_hosts else len(fabric.hosts))


def _neighbours(fabric: Fabric) -> Mapping[str, Sequence[str]]:
    return {node: tuple(dict.fromkeys(link.destination for link in links)) for node, links in fabric.links_from.items()}


def _tiers(fabric: Fabric) -> list[tuple[str, ...]]:
    """The nodes by their distance from the nearest host, in the order of the fabric."""
    neighbours = _neighbours(fabric)
    distance = dict.fromkeys(fabric.hosts, 0)
    reached: Iterable[str] = fabric.hosts
    while reached:
        nearer, reached = reached, []
        for node in nearer:
            for neighbour in neighbours[node]:
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    reached.append(neighbour)
    nodes = (*fabric.hosts, *fabric.switches)
    return [tuple(node for node in nodes if distance[node] == tier) for tier in range(max(distance.values()) + 1)]


def _ordered(tiers: list[tuple[str, ...]], neighbours: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """The same tiers, with nodes near their neighbours."""
    tier_of = {node: number for number, tier in enumerate(tiers) for node in tier}
    place = {node: (at + 0.5) / len(tier) for tier in tiers for at, node in enumerate(tier)}
    upwards = [(number, number - 1) for number in range(1, len(tiers))]
    downwards = [(number, number + 1) for number in reversed(range(len(tiers) - 1))]
    for number, beside in (upwards + downwards) * _SWEEPS:
        wanted = {}
        for node in tiers[number]:
            places = [place[each] for each in neighbours[node] if tier_of[each] == beside]
            wanted[node] = fmean(places) if places else place[node]
        tiers[number] = tuple(sorted(tiers[number], key=wanted.__getitem__))
        place |= {node: (at + 0.5) / len(tiers[number]) for at, node in enumerate(tiers[number])}
    return tiers


def map_row(fabric: Fabric, drawn: FabricMap) -> Mapping[str, object]:
    """What the browser gets: tiers of nodes with their kinds, and cables by number with their ends and rates."""
    kinds = dict.fromkeys(fabric.hosts, "host") | dict.fromkeys(fabric.switches, "switch")
    kinds |= dict.fromkeys(fabric.ordinary_switches, "ordinary")
    return {
        "tiers": [[[node, kinds[node]] for node in tier] for tier in drawn.tiers],
        "cables": {
            str(cable): [*fabric.cables[cable].ends, fabric.cables[cable].rate_bps, fabric.parallel_index(2 * cable)]
            for cable in drawn.cables
        },
        "hosts_left_out": drawn.hosts_left_out,
        "cables_left_out": len(fabric.cables) - len(drawn.cables),
    }
