"""Decode the path of a probe from its INT stack, also where ordinary switches on it say nothing."""

from collections.abc import Iterator

from controller.telemetry.report_checks import RejectReason
from hostlib.wire.int_md import HOP_PATH
from topologies.fabric import Fabric, Nic, Path

_MAX_WAYS = 256
"""Between ordinary switches; that many are too many in any case."""


class PathDecoder:
    """Decodes the path of a probe from the switches and ports in its INT stack.

    Ordinary switches put nothing on the stack, or what means nothing here. Their part of a path follows from the ports
    of the switches before and behind them, where only one cable fits.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._links = fabric.links
        self._node_ids = {
            name: identity.node_id for name, identity in fabric.identity.items() if name not in fabric.ordinary_switches
        }
        self._known_nodes = frozenset(self._node_ids.values())
        self._link_by_egress = {
            (self._node_ids[link.source], link.source_port): link.index
            for link in fabric.links
            if link.source in self._node_ids
        }
        self._link_by_ingress = {
            (self._node_ids[link.destination], link.destination_port): link.index
            for link in fabric.links
            if link.destination in self._node_ids
        }

    def decode(self, path_octets: bytes, source: Nic, destination: Nic) -> Path | RejectReason:
        """Return the path from NIC to NIC, or why the topology has none such.

        A switch writes all ones for what it does not know, which is neither a switch nor a port.
        """
        ordinary = self._fabric.ordinary_switches
        if not path_octets and not ordinary:
            return RejectReason.STACK
        hops = list(HOP_PATH.iter_unpack(path_octets))
        known = [hop for hop in reversed(hops) if hop[0] in self._known_nodes]
        if len(known) < len(hops) and not ordinary:
            return RejectReason.UNKNOWN_SWITCH
        path = [source.link]
        for node_id, ingress_port, egress_port in known:
            into = self._link_by_ingress.get((node_id, ingress_port))
            link = self._link_by_egress.get((node_id, egress_port))
            if into is None or link is None or not self._continue(path, into):
                return RejectReason.NOT_ADJACENT
            path.append(link)
        if not self._continue(path, self._fabric.reverse(destination.link)):
            return RejectReason.NOT_ADJACENT
        num_ordinary = sum(self._links[link].source in ordinary for link in path[1:])
        return tuple(path) if len(hops) - len(known) in (0, num_ordinary) else RejectReason.UNKNOWN_SWITCH

    def _continue(self, path: list[int], into: int) -> bool:
        """Lengthen a path through ordinary switches until it ends with a link; False where no or several ways do."""
        if path[-1] == into:
            return True
        ways = list(self._ways(self._links[path[-1]].destination, into))
        if len(ways) != 1:
            return False
        path += ways[0]
        return True

    def _ways(self, node: str, into: int) -> Iterator[Path]:
        """Iterate over the shortest ways from a node over a link, through ordinary switches alone."""
        wanted, ordinary = self._links[into].source, self._fabric.ordinary_switches
        begun: list[tuple[str, Path]] = [(node, ())] if {node, wanted} <= ordinary else []
        for _ in range(len(ordinary)):
            ended = [(*path, into) for end, path in begun if end == wanted]
            if ended:
                yield from ended
                return
            begun = [
                (link.destination, (*path, link.index))
                for end, path in begun
                for link in self._fabric.links_from[end]
                if link.destination in ordinary
            ][:_MAX_WAYS]
