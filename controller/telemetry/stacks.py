"""From an INT stack to the path that it tells of, as far as the topology allows that to be true."""

from controller.telemetry.drops import Drop
from hostlib.telemetry.int_md import Hop, read_stack
from topologies.fabric import Fabric, Nic, Path

_Ways = tuple[tuple[int | None, int | None, int | None], ...]


class StackReader:
    """Reads the stacks of probes that crossed a fabric, whose switches are numbered from 1 in INT."""

    def __init__(self, fabric: Fabric) -> None:
        self._links = fabric.links
        self._node_ids = {name: index + 1 for name, index in fabric.switch_index.items()}
        self._num_switches = len(fabric.switches)
        self._link_by_egress = {
            (self._node_ids[link.source], link.source_port): link.index
            for link in fabric.links
            if link.source in self._node_ids
        }
        self._known: dict[tuple[int, int, _Ways], Path] = {}

    def read(self, stack: bytes, source: Nic, destination: Nic) -> tuple[Path, tuple[Hop, ...]] | Drop:
        """The path from NIC to NIC and what each switch on it told; why it cannot be believed, if so."""
        try:
            hops = read_stack(stack)
        except ValueError:
            return Drop.STACK
        if not hops:
            return Drop.STACK
        ways = tuple([(hop.node_id, hop.ingress_port, hop.egress_port) for hop in hops])
        key = source.link, destination.link, ways
        path = self._known.get(key)
        if path is None:
            found = self._walk(ways, source, destination)
            if isinstance(found, Drop):
                return found
            path = self._known[key] = found
        for hop in hops:
            ingress_us, egress_us = hop.ingress_us, hop.egress_us
            if ingress_us is None or egress_us is None:
                continue
            if egress_us < ingress_us or (hop.latency_us is not None and hop.latency_us != egress_us - ingress_us):
                return Drop.HOP_TIMES
        return path, hops

    def _walk(self, ways: _Ways, source: Nic, destination: Nic) -> Path | Drop:
        path = [source.link]
        for node_id, ingress_port, egress_port in ways:
            if node_id is None or not 1 <= node_id <= self._num_switches:
                return Drop.UNKNOWN_SWITCH
            before = self._links[path[-1]]
            if (self._node_ids.get(before.destination), before.destination_port) != (node_id, ingress_port):
                return Drop.NOT_ADJACENT
            link = self._link_by_egress.get((node_id, egress_port)) if egress_port is not None else None
            if link is None:
                return Drop.NOT_ADJACENT
            path.append(link)
        last = self._links[path[-1]]
        if (last.destination, last.destination_port) != (destination.host, destination.index):
            return Drop.NOT_ADJACENT
        return tuple(path)
