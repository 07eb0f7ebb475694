"""The plain interpreter for programs that copy packets or send them through again: one packet in, all that leaves."""

from dataclasses import dataclass

from emulator.replication import Replication
from tests.emulator.evaluator import Packet
from tests.emulator.interpreter import DROP_PORT, Interpreter
from tests.emulator.lone_switch import Sent
from tests.emulator.programs import Json

CLONED_AT_INGRESS, CLONED_AT_EGRESS, RECIRCULATED, REPLICATED, RESUBMITTED = 1, 2, 4, 5, 6
MAX_PASSES = 64


@dataclass
class Journey(Packet):
    """A packet with what it has asked for and how it came to be."""

    passes: int = 0
    arrival_port: int = 0
    replication: Replication | None = None
    clone: tuple[int, int] | None = None
    resubmit: int = 0
    recirculate: int = 0


class ReplicatingInterpreter(Interpreter):
    """A switch with ``multicast_groups`` and ``sessions`` by number; ``lost`` counts what came to no end."""

    def __init__(self, program: Json) -> None:
        super().__init__(program)
        self.multicast_groups: dict[int, Replication] = {}
        self.sessions: dict[int, Replication] = {}
        self.lost = 0
        self._lists = {node["id"]: node["elements"] for node in program["field_lists"]}
        self._arriving: list[Journey] = []
        self._leaving: list[tuple[int, Journey]] = []

    def process_all(self, octets: bytes, port: int) -> list[Sent]:
        """All that leaves because of a packet, in no particular order."""
        packet = self._journey(octets)
        packet.arrival_port = port
        self.set(packet, ["standard_metadata", "ingress_port"], port)
        self.set(packet, ["standard_metadata", "packet_length"], len(octets))
        self._arriving.append(packet)
        sent = []
        while self._arriving or self._leaving:
            if self._arriving:
                self._arrive(self._arriving.pop())
            else:
                sent += self._leave(*self._leaving.pop())
        return sent

    def primitive(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> None:
        """See Interpreter."""
        assert isinstance(packet, Journey)
        values = (
            [self.value(packet, value, arguments) for value in node["parameters"] if "value" in value]
            if node["op"] in _REQUESTS
            else []
        )
        match node["op"]:
            case "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress":
                packet.clone = values[0] % 2**15, values[1]
            case "resubmit":
                packet.resubmit = values[0]
            case "recirculate":
                packet.recirculate = values[0]
            case _:
                super().primitive(packet, node, arguments)

    def after_egress(self, packet: Packet) -> None:
        """See Interpreter: the moment of clones that egress asked for."""
        assert isinstance(packet, Journey)
        if packet.clone:
            self._clone(packet, packet.valid, CLONED_AT_EGRESS)

    def _arrive(self, packet: Journey) -> None:
        self.pass_ingress(packet)
        if packet.clone:
            again = self._journey(packet.octets)
            self.set(again, ["standard_metadata", "ingress_port"], packet.arrival_port)
            self.parse(again)
            self._clone(packet, again.valid, CLONED_AT_INGRESS, again)
        group = self.get(packet, ["standard_metadata", "mcast_grp"])
        port = self.get(packet, ["standard_metadata", "egress_spec"])
        if packet.resubmit:
            self._pass_again(packet, packet.octets, packet.resubmit, RESUBMITTED)
        elif group:
            self.set(packet, ["standard_metadata", "instance_type"], REPLICATED)
            self._replicate(packet, self.multicast_groups.get(group, Replication(())))
        elif port != DROP_PORT:
            self.set(packet, ["standard_metadata", "instance_type"], 0)
            self._leaving.append((port, packet))

    def _leave(self, port: int, packet: Journey) -> list[Sent]:
        level = self.get(packet, ["standard_metadata", "priority"])
        octets = self.pass_egress(packet, port)
        if octets is None:
            return []
        if packet.replication and packet.replication.longest_bytes:
            octets = octets[: packet.replication.longest_bytes]
        if packet.recirculate:
            self._pass_again(packet, octets, packet.recirculate, RECIRCULATED)
            return []
        return [Sent(port, level, octets[: packet.longest])]

    def _clone(self, packet: Journey, valid: set[str], instance: int, parsed: Journey | None = None) -> None:
        assert packet.clone is not None
        (session, fields), packet.clone = packet.clone, None
        if session not in self.sessions:
            return
        if packet.passes == MAX_PASSES:
            self.lost += 1
            return
        copy = self._next(packet, packet.octets, fields, instance)
        source = parsed or packet
        copy.position, copy.following = source.position, dict(source.following)
        copy.valid |= {name for name in valid if not self.headers[name]["metadata"]}
        copy.fields |= {
            place: value for place, value in source.fields.items() if not self.headers[place[0]]["metadata"]
        }
        copy.replication = self.sessions[session]
        if copy.replication.level is not None:
            self.set(copy, ["standard_metadata", "priority"], copy.replication.level)
        self._replicate(copy, copy.replication)

    def _replicate(self, packet: Journey, replication: Replication) -> None:
        for replica in replication.replicas:
            copy = Journey(
                packet.octets,
                packet.position,
                dict(packet.fields),
                set(packet.valid),
                dict(packet.following),
                passes=packet.passes,
                arrival_port=packet.arrival_port,
                replication=packet.replication,
            )
            self.set(copy, ["standard_metadata", "egress_rid"], replica.instance)
            self._leaving.append((replica.port, copy))

    def _pass_again(self, packet: Journey, octets: bytes, fields: int, instance: int) -> None:
        if packet.passes == MAX_PASSES:
            self.lost += 1
            return
        copy = self._next(packet, octets, fields, instance)
        self.set(copy, ["standard_metadata", "packet_length"], len(octets))
        self._arriving.append(copy)

    def _next(self, packet: Journey, octets: bytes, fields: int, instance: int) -> Journey:
        """Another packet that has kept the fields of a list alone."""
        copy = self._journey(octets)
        copy.passes, copy.arrival_port, copy.replication = packet.passes + 1, packet.arrival_port, packet.replication
        kept = [element["value"] for element in self._lists.get(fields, [])]
        for place in [*kept, ["standard_metadata", "packet_length"]]:
            self.set(copy, place, self.get(packet, place))
        self.set(copy, ["standard_metadata", "instance_type"], instance)
        return copy

    def _journey(self, octets: bytes) -> Journey:
        fresh = self.fresh(octets)
        return Journey(octets, fields=fresh.fields, valid=fresh.valid)


_REQUESTS = frozenset({"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", "resubmit", "recirculate"})
