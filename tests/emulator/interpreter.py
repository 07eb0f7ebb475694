"""A plain interpreter of BMv2 JSON: the meaning of a program, one packet at a time, with Python's integers.

It follows what the format says and nothing else: entries are lists that are searched from end to end, headers are
dictionaries, bytes are taken apart bit by bit. The emulator's compiled programs must do the same.
"""

from typing import Any

from emulator.cells import Member
from emulator.compiler import jumps
from emulator.entries import (
    ActionCall,
    EntryAction,
    EntryKey,
    GroupReference,
    MemberReference,
)
from tests.emulator.evaluator import Evaluator, Packet
from tests.emulator.header_statements import HeaderStatements
from tests.emulator.lone_switch import Sent
from tests.emulator.matching import has_priorities, initial_entries, masked_bits, takes
from tests.emulator.plain_parser import PlainParser
from tests.emulator.programs import Json

DROP_PORT = 511


class Interpreter(Evaluator):
    """A switch that interprets the program.

    Tests fill ``entries``, ``defaults``, ``members`` and ``groups``. ``direct_counters`` and ``counters`` hold
    [packets, bytes], and ``registers`` values.
    """

    def __init__(self, program: Json) -> None:
        super().__init__(program)
        self._actions = {action["id"]: action for action in program["actions"]}
        self._pipelines = {pipeline["name"]: pipeline for pipeline in program["pipelines"]}
        tables = [table for pipeline in program["pipelines"] for table in pipeline["tables"]]
        self.entries: dict[str, dict[EntryKey, EntryAction]] = {
            table["name"]: initial_entries(table, self.width, self._actions) for table in tables
        }
        self.defaults: dict[str, ActionCall] = {}
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.direct_counters: dict[tuple[str, EntryKey], list[int]] = {}
        self.counters: dict[tuple[str, int], list[int]] = {}
        self.registers: dict[tuple[str, int], int] = {}
        self.value_sets: dict[str, tuple[Member, ...]] = {}
        self.random_state = 1  # the id of the device
        self._statements = HeaderStatements(self)
        self._parser = PlainParser(self, self._statements, self.primitive)

    def process(self, octets: bytes, port: int = 1, depths: tuple[int, int] = (0, 0)) -> Sent | None:
        """What becomes of a packet; ``depths`` are the queue's when it comes and when it leaves."""
        packet = self.fresh(octets)
        self.set(packet, ["standard_metadata", "ingress_port"], port)
        self.set(packet, ["standard_metadata", "packet_length"], len(octets))
        self.pass_ingress(packet)
        egress_port = self.get(packet, ["standard_metadata", "egress_spec"])
        if egress_port == DROP_PORT or packet.is_endless:
            return None
        level = self.get(packet, ["standard_metadata", "priority"])
        left = self.pass_egress(packet, egress_port, depths)
        return None if left is None else Sent(egress_port, level, left[: packet.longest])

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
        if packet.is_endless:
            return
        for checksum in self.checksums(packet, "verify"):
            held = self.get(packet, checksum["target"]) & (1 << self.width(checksum["target"])) - 1
            if held != self.calculated(packet, checksum["calculation"]):
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
        if self.get(packet, ["standard_metadata", "egress_spec"]) == DROP_PORT or packet.is_endless:
            return None
        for checksum in self.checksums(packet, "update"):
            self.set(packet, checksum["target"], self.calculated(packet, checksum["calculation"]))
        return self._deparsed(packet)

    def after_egress(self, packet: Packet) -> None:
        """What happens between egress and deparser: here nothing."""

    def parse(self, packet: Packet) -> None:
        """Take headers from the packet's bytes."""
        self._parser.parse(packet, self.value_sets)

    def _deparsed(self, packet: Packet) -> bytes:
        headers = b""
        for statement in self.program["deparsers"][0].get("primitives", ()):
            self.primitive(packet, statement, ())
        for header in self.program["deparsers"][0]["order"]:
            if header in packet.valid:
                value = width = 0
                variable = b""
                for name, bits, *_ in self.types[self.headers[header]["header_type"]]:
                    if bits == "*":
                        variable = packet.octets_of.get((header, name), b"")
                        continue
                    value, width = value << bits | packet.fields.get((header, name), 0), width + bits
                headers += value.to_bytes(width // 8, "big") + variable
        return headers + packet.octets[packet.position :]

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _control(self, packet: Packet, name: str) -> None:
        pipeline = self._pipelines[name]
        tables = {table["name"]: table for table in pipeline["tables"]}
        conditions = {condition["name"]: condition for condition in pipeline["conditionals"]}
        calls = {call["name"]: call for call in pipeline.get("action_calls") or ()}
        following = pipeline["init_table"]
        packet.has_exited = False
        while following is not None and not packet.has_exited:
            if following in calls:
                self._execute(packet, self._actions[calls[following]["action_id"]]["primitives"], ())
                following = calls[following]["next_node"]
            elif following in conditions:
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
        values = [self._key_value(packet, part["target"]) & int(part["mask"] or "-1", 16) for part in table["key"]]
        found = [
            key
            for key in self.entries[table["name"]]
            if all(takes(match, value) for value, match in zip(values, key.match, strict=True))
        ]
        if has_priorities(table):
            return max(found, key=lambda key: key.priority, default=None)
        return max(found, key=masked_bits, default=None)

    def _key_value(self, packet: Packet, target: list[str]) -> int:
        """The bits of a field; those of a header that is not valid are zeros to a table."""
        if target[1] == "$valid$":
            return self.get(packet, target)
        is_there = self.headers[target[0]]["metadata"] or target[0] in packet.valid
        return self.get(packet, target) & (1 << self.width(target)) - 1 if is_there else 0

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
        position = repeats = 0
        before = -1
        while position < len(primitives):
            repeats += position <= before
            if repeats > jumps.MAX_REPEATS:
                packet.is_endless = True
                return
            node, before = primitives[position], position
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
                value = self.value(packet, parameters[1], arguments)
                self.set(packet, self.reference(packet, parameters[0], arguments), value)
            case "assign_VL":
                to, of = (tuple(part["value"]) for part in parameters)
                packet.octets_of[to] = packet.octets_of.get(of, b"")
            case "exit":
                packet.has_exited = True
            case "log_msg" | "generate_digest":
                pass
            case "truncate":
                length = self.value(packet, parameters[0], arguments)
                packet.longest = length if packet.longest is None else min(length, packet.longest)
            case "assert" | "assume":
                packet.is_endless |= not self.value(packet, parameters[0], arguments)
            case "register_read":
                name, index = parameters[1]["value"], self.value(packet, parameters[2], arguments)
                if index < self._declared("register_arrays", name)["size"]:
                    target = self.reference(packet, parameters[0], arguments)
                    self.set(packet, target, self.registers.get((name, index), 0))
            case "register_write":
                name, index = parameters[0]["value"], self.value(packet, parameters[1], arguments)
                register = self._declared("register_arrays", name)
                if index < register["size"]:
                    mask = (1 << register["bitwidth"]) - 1
                    self.registers[name, index] = self.value(packet, parameters[2], arguments) & mask
            case "mark_to_drop":
                self.set(packet, ["standard_metadata", "egress_spec"], DROP_PORT)
                self.set(packet, ["standard_metadata", "mcast_grp"], 0)
            case "modify_field_with_hash_based_offset":
                base, size = (self.value(packet, parameters[n], arguments) for n in (1, 3))
                hashed = self.calculated(packet, parameters[2]["value"])
                self.set(packet, self.reference(packet, parameters[0], arguments), base + hashed % (size or 1))
            case "modify_field_rng_uniform":
                low, high = (self.value(packet, part, arguments) for part in parameters[1:])
                if low <= high:
                    self.set(
                        packet,
                        self.reference(packet, parameters[0], arguments),
                        low + self._random() % (high - low + 1),
                    )
            case "count":
                name, index = parameters[0]["value"], self.value(packet, parameters[1], arguments)
                if index < self._declared("counter_arrays", name)["size"]:
                    _count(self.counters, (name, index), self.get(packet, ["standard_metadata", "packet_length"]))
            case _:
                self._statements.execute(packet, node, arguments)

    def _random(self) -> int:
        """The next number of SplitMix64."""
        word = (1 << 64) - 1
        self.random_state = self.random_state + 0x9E3779B97F4A7C15 & word
        mixed = (self.random_state ^ self.random_state >> 30) * 0xBF58476D1CE4E5B9 & word
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & word
        return mixed ^ mixed >> 31

    def _declared(self, kind: str, name: str) -> Json:
        return next(node for node in self.program[kind] if node["name"] == name)


def _count(cells: dict[Any, list[int]], cell: Any, length: int) -> None:
    counted = cells.setdefault(cell, [0, 0])
    counted[0] += 1
    counted[1] += length
