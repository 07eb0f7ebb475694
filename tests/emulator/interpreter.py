"""A plain interpreter of BMv2 JSON: the meaning of a program, one packet at a time, with Python's integers.

It follows what the format says and nothing else: entries are lists that are searched from end to end, headers are
dictionaries, bytes are taken apart bit by bit. The emulator's compiled programs must do the same.
"""

from typing import Any

from emulator.entries import ActionCall, EntryAction, EntryKey, GroupReference, MemberReference
from tests.emulator.evaluator import PACKET_TOO_SHORT, Evaluator, Packet, ParserError
from tests.emulator.lone_switch import Sent
from tests.emulator.programs import Json

DROP_PORT = 511


class Interpreter(Evaluator):
    """A switch; ``entries``, ``defaults``, ``members`` and ``groups`` are its to look things up in and the test's to
    fill, ``direct_counters`` and ``counters`` hold [packets, bytes] and ``registers`` values."""

    def __init__(self, program: Json) -> None:
        super().__init__(program)
        self._actions = {action["id"]: action for action in program["actions"]}
        self._pipelines = {pipeline["name"]: pipeline for pipeline in program["pipelines"]}
        tables = [table for pipeline in program["pipelines"] for table in pipeline["tables"]]
        self.entries: dict[str, dict[EntryKey, EntryAction]] = {table["name"]: {} for table in tables}
        self.defaults: dict[str, ActionCall] = {}
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.direct_counters: dict[tuple[str, EntryKey], list[int]] = {}
        self.counters: dict[tuple[str, int], list[int]] = {}
        self.registers: dict[tuple[str, int], int] = {}

    def process(self, octets: bytes, port: int = 1, depths: tuple[int, int] = (0, 0)) -> Sent | None:
        """What becomes of a packet; ``depths`` are the queue's when it comes and when it leaves."""
        packet = self.fresh(octets)
        self.set(packet, ["standard_metadata", "ingress_port"], port)
        self.set(packet, ["standard_metadata", "packet_length"], len(octets))
        self.pass_ingress(packet)
        egress_port = self.get(packet, ["standard_metadata", "egress_spec"])
        if egress_port == DROP_PORT:
            return None
        level = self.get(packet, ["standard_metadata", "priority"])
        left = self.pass_egress(packet, egress_port, depths)
        return None if left is None else Sent(egress_port, level, left)

    def fresh(self, octets: bytes) -> Packet:
        """A packet of which nothing is known yet: all metadata is 0."""
        packet = Packet(octets)
        for name, header in self.headers.items():
            if header["metadata"]:
                packet.valid.add(name)
                packet.fields |= {(name, entry[0]): 0 for entry in self.types[header["header_type"]]}
        return packet

    def pass_ingress(self, packet: Packet) -> None:
        """Parser, checksums and ingress."""
        self.parse(packet)
        for checksum in self.checksums(packet, "verify"):
            if self.get(packet, checksum["target"]) != self.calculated(packet, checksum["calculation"]):
                self.set(packet, ["standard_metadata", "checksum_error"], 1)
        self._control(packet, "ingress")

    def pass_egress(self, packet: Packet, port: int, depths: tuple[int, int] = (0, 0)) -> bytes | None:
        """Egress, checksums and deparser: the packet as it leaves, None where it is dropped."""
        self.set(packet, ["standard_metadata", "egress_port"], port)
        self.set(packet, ["standard_metadata", "egress_spec"], 0)
        self.set(packet, ["standard_metadata", "enq_qdepth"], depths[0])
        self.set(packet, ["standard_metadata", "deq_qdepth"], depths[1])
        self._control(packet, "egress")
        self.after_egress(packet)
        if self.get(packet, ["standard_metadata", "egress_spec"]) == DROP_PORT:
            return None
        for checksum in self.checksums(packet, "update"):
            self.set(packet, checksum["target"], self.calculated(packet, checksum["calculation"]))
        return self._deparsed(packet)

    def after_egress(self, packet: Packet) -> None:
        """What happens between egress and deparser: here nothing."""

    # ---- parser and deparser ----------------------------------------------------------------------------------------

    def parse(self, packet: Packet) -> None:
        """Take headers from the packet's bytes."""
        (parser,) = self.program["parsers"]
        states = {state["name"]: state for state in parser["parse_states"]}
        following = parser["init_state"]
        try:
            while following is not None:
                following = self._next_state(packet, states[following])
        except ParserError as error:
            self.set(packet, ["standard_metadata", "parser_error"], error.code)

    def _next_state(self, packet: Packet, state: Json) -> str | None:
        for operation in state["parser_ops"]:
            target = operation["parameters"][0]
            if operation["op"] == "extract":
                self._extract(packet, target["value"])
            elif operation["op"] == "set":
                self.set(packet, target["value"], self.value(packet, operation["parameters"][1]))
            elif operation["op"] == "verify":
                if not self.value(packet, target):
                    raise ParserError(self.value(packet, operation["parameters"][1]))
            elif operation["op"] == "advance":
                num_bytes = self.value(packet, target) // 8
                if packet.position + num_bytes > len(packet.octets):
                    raise ParserError(PACKET_TOO_SHORT)
                packet.position += num_bytes
            else:
                raise NotImplementedError(operation["op"])
        key = b"".join(self._key_bytes(packet, part) for part in state["transition_key"])
        for transition in state["transitions"]:
            following: str | None = transition["next_state"]
            if transition["type"] == "default":
                return following
            mask = int(transition["mask"] or "0x" + "ff" * len(key), 16)
            if int.from_bytes(key, "big") & mask == int(transition["value"], 16) & mask:
                return following
        raise NotImplementedError("a state without default")

    def _extract(self, packet: Packet, header: str) -> None:
        entries = self.types[self.headers[header]["header_type"]]
        num_bytes = sum(entry[1] for entry in entries) // 8
        if packet.position + num_bytes > len(packet.octets):
            raise ParserError(PACKET_TOO_SHORT)
        offset = 0
        for name, width, *_ in entries:
            packet.fields[header, name] = packet.bits(offset, width)
            offset += width
        packet.valid.add(header)
        packet.position += num_bytes

    def _key_bytes(self, packet: Packet, part: Json) -> bytes:
        width = part["value"][1] if part["type"] == "lookahead" else self.width(part["value"])
        return self.value(packet, part).to_bytes((width + 7) // 8, "big")

    def _deparsed(self, packet: Packet) -> bytes:
        headers = b""
        for header in self.program["deparsers"][0]["order"]:
            if header in packet.valid:
                value = width = 0
                for name, bits, *_ in self.types[self.headers[header]["header_type"]]:
                    value, width = value << bits | packet.fields.get((header, name), 0), width + bits
                headers += value.to_bytes(width // 8, "big")
        return headers + packet.octets[packet.position :]

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _control(self, packet: Packet, name: str) -> None:
        pipeline = self._pipelines[name]
        tables = {table["name"]: table for table in pipeline["tables"]}
        conditions = {condition["name"]: condition for condition in pipeline["conditionals"]}
        following = pipeline["init_table"]
        while following is not None:
            if following in conditions:
                condition = conditions[following]
                following = condition["true_next" if self.value(packet, condition["expression"]) else "false_next"]
            else:
                following = self._apply(packet, tables[following], pipeline)

    def _apply(self, packet: Packet, table: Json, pipeline: Json) -> str | None:
        """Apply a table; the next node is returned."""
        name = table["name"]
        key = self._matching(packet, table)
        if key is None:
            call = self._default(table)
        else:
            if table["with_counters"]:
                _count(self.direct_counters, (name, key), self.get(packet, ["standard_metadata", "packet_length"]))
            call = self._call(packet, self.entries[name][key], table, pipeline)
        following: dict[str, str | None] = table["next_tables"]
        if call is not None:
            action = next(
                self._actions[number] for number in table["action_ids"] if self._actions[number]["name"] == call.action
            )
            self._execute(packet, action["primitives"], call.arguments)
        if "__HIT__" in following:
            return following["__MISS__" if key is None else "__HIT__"]
        base: str | None = table["base_default_next"]
        return base if call is None else following[call.action]

    def _matching(self, packet: Packet, table: Json) -> EntryKey | None:
        values = [self.get(packet, part["target"]) & int(part["mask"] or "-1", 16) for part in table["key"]]
        found = [
            key
            for key in self.entries[table["name"]]
            if all(value & match.mask == match.value for value, match in zip(values, key.match, strict=True))
        ]
        if any(part["match_type"] in ("ternary", "optional") for part in table["key"]):
            return max(found, key=lambda key: key.priority, default=None)
        return max(found, key=lambda key: sum(match.mask.bit_count() for match in key.match), default=None)

    def _default(self, table: Json) -> ActionCall | None:
        if table["name"] in self.defaults:
            return self.defaults[table["name"]]
        entry = table.get("default_entry")
        if entry is None:
            return None
        return ActionCall(
            self._actions[entry["action_id"]]["name"], tuple(int(text, 16) for text in entry["action_data"])
        )

    def _call(self, packet: Packet, action: EntryAction, table: Json, pipeline: Json) -> ActionCall | None:
        match action:
            case ActionCall():
                return action
            case MemberReference(member_id):
                return self.members[member_id]
            case GroupReference(group_id):
                member_ids = self.groups[group_id]
                profile = next(node for node in pipeline["action_profiles"] if node["name"] == table["action_profile"])
                hashed = self.hash(packet, profile["selector"])
                return self.members[member_ids[hashed % len(member_ids)]] if member_ids else None

    def _execute(self, packet: Packet, primitives: list[Json], arguments: tuple[int, ...]) -> None:
        position = 0
        while position < len(primitives):
            node = primitives[position]
            values = node["parameters"]
            position += 1
            if node["op"] == "_jump":
                position = self.value(packet, values[0], arguments)
            elif node["op"] == "_jump_if_zero":
                if not self.value(packet, values[0], arguments):
                    position = self.value(packet, values[1], arguments)
            else:
                self.primitive(packet, node, arguments)

    def primitive(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> None:
        """One statement of an action."""
        parameters = node["parameters"]
        match node["op"]:
            case "assign":
                self.set(packet, parameters[0]["value"], self.value(packet, parameters[1], arguments))
            case "add_header":
                self._add_header(packet, parameters[0]["value"])
            case "remove_header":
                packet.valid.discard(parameters[0]["value"])
            case "assign_header":
                self._copy_header(packet, parameters[0]["value"], parameters[1]["value"])
            case "register_read":
                cell = parameters[1]["value"], self.value(packet, parameters[2], arguments)
                self.set(packet, parameters[0]["value"], self.registers.get(cell, 0))
            case "register_write":
                name, index = parameters[0]["value"], self.value(packet, parameters[1], arguments)
                register = next(node for node in self.program["register_arrays"] if node["name"] == name)
                if index < register["size"]:
                    mask = (1 << register["bitwidth"]) - 1
                    self.registers[name, index] = self.value(packet, parameters[2], arguments) & mask
            case "mark_to_drop":
                self.set(packet, ["standard_metadata", "egress_spec"], DROP_PORT)
                self.set(packet, ["standard_metadata", "mcast_grp"], 0)
            case "modify_field_with_hash_based_offset":
                base, size = (self.value(packet, parameters[n], arguments) for n in (1, 3))
                hashed = self.calculated(packet, parameters[2]["value"])
                self.set(packet, parameters[0]["value"], base + hashed % size)
            case "count":
                name, index = parameters[0]["value"], self.value(packet, parameters[1], arguments)
                counter = next(node for node in self.program["counter_arrays"] if node["name"] == name)
                if index < counter["size"]:
                    _count(self.counters, (name, index), self.get(packet, ["standard_metadata", "packet_length"]))
            case other:
                raise NotImplementedError(other)

    def _add_header(self, packet: Packet, header: str) -> None:
        """A header that is added is zero; one that is there already stays as it is."""
        if header not in packet.valid:
            for name, *_ in self.types[self.headers[header]["header_type"]]:
                packet.fields[header, name] = 0
        packet.valid.add(header)

    def _copy_header(self, packet: Packet, target: str, source: str) -> None:
        if source not in packet.valid:
            packet.valid.discard(target)
            return
        packet.valid.add(target)
        for name, *_ in self.types[self.headers[source]["header_type"]]:
            packet.fields[target, name] = packet.fields[source, name]


def _count(cells: dict[Any, list[int]], cell: Any, length: int) -> None:
    counted = cells.setdefault(cell, [0, 0])
    counted[0] += 1
    counted[1] += length
