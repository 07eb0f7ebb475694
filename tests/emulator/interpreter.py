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
from tests.emulator.evaluator import (
    HEADER_TOO_SHORT,
    PACKET_TOO_SHORT,
    STACK_OUT_OF_BOUNDS,
    Evaluator,
    Packet,
    ParserError,
)
from tests.emulator.lone_switch import Sent
from tests.emulator.matching import has_priorities, initial_entries, masked_bits, takes
from tests.emulator.programs import Json

DROP_PORT = 511
INVALID_ARGUMENT = 6


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
            if operation["op"] in ("extract", "extract_VL"):
                bits = self.value(packet, operation["parameters"][1]) if operation["op"] == "extract_VL" else 0
                header = target["value"]
                following_of = {"stack": header, "union_stack": header[0]}.get(target["type"])
                if following_of:
                    elements = self._elements(header) if target["type"] == "union_stack" else self.stacks[header]
                    number = packet.following.get(following_of, 0)
                    if number == len(elements):
                        raise ParserError(STACK_OUT_OF_BOUNDS)
                    header = elements[number]
                self._extract(packet, header, bits)
                if following_of:
                    packet.following[following_of] = packet.following.get(following_of, 0) + 1
            elif operation["op"] == "set":
                self.set(packet, self.reference(packet, target), self.value(packet, operation["parameters"][1]))
            elif operation["op"] == "primitive":
                self.primitive(packet, target, ())
            elif operation["op"] == "verify":
                if not self.value(packet, target):
                    raise ParserError(self.value(packet, operation["parameters"][1]))
            elif operation["op"] == "advance":
                num_bytes, bits = divmod(self.value(packet, target), 8)
                if bits:
                    raise ParserError(INVALID_ARGUMENT)
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
            if transition["type"] == "parse_vset":
                values = [int.from_bytes(self._key_bytes(packet, part), "big") for part in state["transition_key"]]
                members = self.value_sets.get(transition["value"], ())
                if any(all(takes(m, v) for v, m in zip(values, member, strict=True)) for member in members):
                    return following
                continue
            mask = int(transition["mask"] or "0x" + "ff" * len(key), 16)
            if int.from_bytes(key, "big") & mask == int(transition["value"], 16) & mask:
                return following
        return None

    def _elements(self, target: list[str]) -> list[str]:
        """Headers of one member of a stack of unions."""
        name, member = target
        return [
            header
            for union in self.unions
            if union.startswith(f"{name}[")
            for header in self.unions[union]
            if header.endswith(f".{member}")
        ]

    def _extract(self, packet: Packet, header: str, variable_bits: int = 0) -> None:
        kind = next(k for k in self.program["header_types"] if k["name"] == self.headers[header]["header_type"])
        fixed = sum(entry[1] for entry in kind["fields"] if entry[1] != "*") // 8
        num_bytes, odd_bits = divmod(variable_bits, 8)
        if odd_bits:
            raise ParserError(INVALID_ARGUMENT)
        num_bytes += fixed
        if packet.position + num_bytes > len(packet.octets):
            raise ParserError(PACKET_TOO_SHORT)
        if "max_length" in kind and num_bytes > kind["max_length"]:
            raise ParserError(HEADER_TOO_SHORT)
        offset = 0
        for name, width, *_ in kind["fields"]:
            if width == "*":
                packet.octets_of[header, name] = packet.octets[packet.position + fixed : packet.position + num_bytes]
                continue
            packet.fields[header, name] = packet.bits(offset, width)
            offset += width
        self._make_valid(packet, header)
        packet.position += num_bytes

    def _key_bytes(self, packet: Packet, part: Json) -> bytes:
        value, width = self.value(packet, part), self._key_bits(part)
        return (value & (1 << width) - 1).to_bytes((width + 7) // 8, "big")

    def _key_bits(self, part: Json) -> int:
        if part["type"] == "lookahead":
            return int(part["value"][1])
        if part["type"] == "stack_field":
            return self.width([self.stacks[part["value"][0]][0], part["value"][1]])
        return self.width(part["value"])

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
                self._header_primitive(packet, node, arguments)

    def _random(self) -> int:
        """The next number of SplitMix64."""
        word = (1 << 64) - 1
        self.random_state = self.random_state + 0x9E3779B97F4A7C15 & word
        mixed = (self.random_state ^ self.random_state >> 30) * 0xBF58476D1CE4E5B9 & word
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & word
        return mixed ^ mixed >> 31

    def _header_primitive(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> None:
        parameters = node["parameters"]
        match node["op"]:
            case "add_header":
                header = self.header(packet, parameters[0], arguments)
                if header is not None:
                    self._add_header(packet, header)
            case "remove_header":
                header = self.header(packet, parameters[0], arguments)
                packet.valid -= {header}
            case "assign_header":
                target, source = (self.header(packet, part, arguments) for part in parameters)
                if target is not None and source is not None:
                    self._copy_header(packet, target, source)
            case "assign_header_stack" | "assign_union":
                target, source = (part["value"] for part in parameters)
                if node["op"] == "assign_header_stack":
                    packet.following[target] = packet.following.get(source, 0)
                known = self.stacks | self.unions
                for to, of in zip(known[target], known[source], strict=True):
                    self._copy_header(packet, to, of)
            case "push" | "pop":
                self._shift(packet, parameters[0]["value"], int(parameters[1]["value"], 16), node["op"] == "push")
            case other:
                raise NotImplementedError(other)

    def _shift(self, packet: Packet, stack: str, count: int, is_push: bool) -> None:
        """Elements move by so many places; those of unions with all their members."""
        members = self.union_stacks[stack] if stack in self.union_stacks else [self.stacks[stack]]
        following = packet.following.get(stack, 0) + (count if is_push else -count)
        packet.following[stack] = min(max(following, 0), len(members[0]))
        for elements in members:
            self._shift_headers(packet, elements, count, is_push)

    def _shift_headers(self, packet: Packet, elements: list[str], count: int, is_push: bool) -> None:
        """Headers swap what they hold; those that nothing moves to become invalid."""
        moved = range(len(elements) - 1, count - 1, -1) if is_push else range(len(elements) - count)
        for number in moved:
            one, other = elements[number], elements[number - count if is_push else number + count]
            packet.valid = {{one: other, other: one}.get(header, header) for header in packet.valid}
            for name, *_ in self.types[self.headers[one]["header_type"]]:
                left, right = (packet.fields.get((header, name), 0) for header in (one, other))
                packet.fields |= {(one, name): right, (other, name): left}
                held = [packet.octets_of.get((header, name), b"") for header in (other, one)]
                packet.octets_of |= {(one, name): held[0], (other, name): held[1]}
        packet.valid -= {header for number, header in enumerate(elements) if number not in moved}

    def _declared(self, kind: str, name: str) -> Json:
        return next(node for node in self.program[kind] if node["name"] == name)

    def _make_valid(self, packet: Packet, header: str) -> None:
        """At most one header of a union is valid."""
        for union in self.unions.values():
            if header in union:
                packet.valid -= set(union)
        packet.valid.add(header)

    def _add_header(self, packet: Packet, header: str) -> None:
        """A header that is added is zero; one that is there already stays as it is."""
        if header not in packet.valid:
            for name, *_ in self.types[self.headers[header]["header_type"]]:
                packet.fields[header, name] = 0
                packet.octets_of[header, name] = b""
        self._make_valid(packet, header)

    def _copy_header(self, packet: Packet, target: str, source: str) -> None:
        if source not in packet.valid:
            packet.valid.discard(target)
            return
        self._make_valid(packet, target)
        for name, *_ in self.types[self.headers[source]["header_type"]]:
            packet.fields[target, name] = packet.fields.get((source, name), 0)
            packet.octets_of[target, name] = packet.octets_of.get((source, name), b"")


def _count(cells: dict[Any, list[int]], cell: Any, length: int) -> None:
    counted = cells.setdefault(cell, [0, 0])
    counted[0] += 1
    counted[1] += length
