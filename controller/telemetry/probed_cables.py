"""Where probes cross from one switch to another and the topology has no cable: what a host says, and nothing more."""

from collections.abc import Mapping
from itertools import pairwise

from controller.links.port_states import Port
from hostlib.wire.int_md import HOP_PATH
from topologies.fabric import Fabric


class ProbedCables:
    """Collects the contradictions between the topology and the INT stacks of probes, one for each port.

    Hosts can make stacks up. Where there are ordinary switches nothing is collected: they may be between two hops.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._senders: dict[tuple[int, int], Port] = {}
        self._receivers: dict[tuple[int, int], tuple[Port, Port]] = {}
        """Ports that receive, and which port the topology has at the other end."""
        self._found: dict[Port, Port] = {}
        for link in () if fabric.ordinary_switches else fabric.links:
            if {link.source, link.destination} <= fabric.switch_index.keys():
                sender, receiver = (link.source, link.source_port), (link.destination, link.destination_port)
                self._senders[fabric.identity[link.source].node_id, link.source_port] = sender
                self._receivers[fabric.identity[link.destination].node_id, link.destination_port] = receiver, sender

    def note(self, path_octets: bytes) -> None:
        """Take what a stack tells of a path that the topology does not have."""
        for (node, ingress_port, _), (before, _, egress_port) in pairwise(HOP_PATH.iter_unpack(path_octets)):
            at, sender = self._receivers.get((node, ingress_port)), self._senders.get((before, egress_port))
            if at is not None and sender is not None and at[1] != sender:
                self._found[at[0]] = sender

    def take(self) -> Mapping[Port, Port]:
        """Return from which port probes have come to which since the last call, by the latter."""
        found, self._found = self._found, {}
        return found
