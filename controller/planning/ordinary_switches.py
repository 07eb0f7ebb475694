"""The paths that are left to a flow where ordinary switches hash: nobody can steer it there.

What such a switch does with a flow is known from probes of that flow alone. Elsewhere it is a guess, the same for every
decision: a flow then has one path for each way to the switch, though it may leave by another link.
"""

from collections.abc import Callable, Iterator

from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc
from topologies.fabric import Fabric, Nic, Path
from topologies.paths import Paths
from topologies.routing import Routing


def choosable_paths(
    paths: Paths,
    five_tuple: FiveTuple,
    routing: Routing,
    shown: Path | None,
    has_port: Callable[[Path], bool],
) -> Paths:
    """Return the paths that a flow can be led along, of those given; all of them where it can be led along none.

    Args:
        paths: Candidate paths of the flow.
        five_tuple: The flow.
        routing: The routing of the fabric.
        shown: The path that probes show the flow to take, whatever rules it has.
        has_port: Tells whether a source port is known that leads along a path, for flows whose port may change.
    """
    taken = _Taken(five_tuple, routing, shown)
    found = [path for path in paths if all(taken.by(switch) == link for switch, link in taken.hops(path))]
    found += (path for path in paths if path not in found and has_port(path))
    return Paths(path for path in paths if path in found) if 0 < len(found) < len(paths) else paths


def hashed_path(five_tuple: FiveTuple, routing: Routing, shown: Path | None) -> Path:
    """Return the path of a flow without rules, with what probes show of ordinary switches.

    Raises ValueError if none is left.
    """
    if shown is None:
        return routing.hashed_path(five_tuple)
    nics, links = routing.fabric.nic_by_address, routing.fabric.links
    destination, path = nics[five_tuple.destination_address], [nics[five_tuple.source_address].link]
    taken, crc = _Taken(five_tuple, routing, shown), flow_crc(five_tuple)
    while (node := links[path[-1]].destination) != destination.host:
        if node in routing.fabric.ordinary_switches:
            link = taken.by(node)
        else:
            choices = routing.hash_choices(node, destination)
            link = routing.hashed_link(node, crc, choices) if choices else None
        if link is None or link in path:
            return routing.hashed_path(five_tuple)
        path.append(link)
    return tuple(path)


class _Taken:
    """The links that one flow takes out of ordinary switches: those that probes show, elsewhere guesses."""

    def __init__(self, five_tuple: FiveTuple, routing: Routing, shown: Path | None) -> None:
        self._routing = routing
        self._fabric: Fabric = routing.fabric
        self._destination: Nic = routing.fabric.nic_by_address[five_tuple.destination_address]
        self._crc = flow_crc(five_tuple)
        self._shown = dict(self.hops(shown or ()))

    def hops(self, path: Path) -> Iterator[tuple[str, int]]:
        """Iterate over the ordinary switches on a path, with the links by which it leaves them."""
        for link in path[1:]:
            switch = self._fabric.links[link].source
            if switch in self._fabric.ordinary_switches:
                yield switch, link

    def by(self, switch: str) -> int | None:
        """Return the link by which the flow leaves a switch, None if there is none."""
        shown = self._shown.get(switch)
        choices = self._routing.next_links(switch, self._destination)
        if shown is not None and shown in choices:
            return shown
        return self._routing.hashed_link(switch, self._crc, choices) if choices else None
