"""From the switches and ports that an INT stack names to the path of links between them, where there is one."""

import struct

from controller.telemetry.drops import Drop
from topologies.fabric import Fabric, Nic, Path

_WAY = struct.Struct("!IHH")


class WayFinder:
    """Finds the paths that probes say they took through a fabric, whose switches are numbered from 1 in INT."""

    def __init__(self, fabric: Fabric) -> None:
        self._links = fabric.links
        self._node_ids = {name: index + 1 for name, index in fabric.switch_index.items()}
        self._num_switches = len(fabric.switches)
        self._link_by_egress = {
            (self._node_ids[link.source], link.source_port): link.index
            for link in fabric.links
            if link.source in self._node_ids
        }

    def path(self, ways: bytes, source: Nic, destination: Nic) -> Path | Drop:
        """The path from NIC to NIC by these switches and ports, the last one's first; why there is none, if so.

        All ones, which a switch says that does not know, are no switch and no port of any.
        """
        if not ways:
            return Drop.STACK
        path = [source.link]
        for node_id, ingress_port, egress_port in reversed(list(_WAY.iter_unpack(ways))):
            if not 1 <= node_id <= self._num_switches:
                return Drop.UNKNOWN_SWITCH
            before = self._links[path[-1]]
            if (self._node_ids.get(before.destination), before.destination_port) != (node_id, ingress_port):
                return Drop.NOT_ADJACENT
            link = self._link_by_egress.get((node_id, egress_port))
            if link is None:
                return Drop.NOT_ADJACENT
            path.append(link)
        last = self._links[path[-1]]
        if (last.destination, last.destination_port) != (destination.host, destination.index):
            return Drop.NOT_ADJACENT
        return tuple(path)
