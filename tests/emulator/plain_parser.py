"""Parser of the plain interpreter: states take headers from a packet's bytes, bit by bit."""

from collections.abc import Callable, Mapping

from emulator.cells import Member
from emulator.compiler import jumps
from tests.emulator.evaluator import (
    HEADER_TOO_SHORT,
    PACKET_TOO_SHORT,
    STACK_OUT_OF_BOUNDS,
    Evaluator,
    Packet,
    ParserError,
)
from tests.emulator.header_statements import HeaderStatements
from tests.emulator.matching import takes
from tests.emulator.programs import Json

INVALID_ARGUMENT = 6

ValueSets = Mapping[str, tuple[Member, ...]]


class PlainParser:
    """The only parser of a program; ``primitive`` executes statements that are no parser operations."""

    def __init__(
        self,
        evaluator: Evaluator,
        statements: HeaderStatements,
        primitive: Callable[[Packet, Json, tuple[int, ...]], None],
    ) -> None:
        self._evaluator = evaluator
        self._statements = statements
        self._primitive = primitive

    def parse(self, packet: Packet, value_sets: ValueSets) -> None:
        """Take headers from the packet's bytes."""
        (parser,) = self._evaluator.program["parsers"]
        states = {state["name"]: state for state in parser["parse_states"]}
        idle, entered = self._idle_states(states), 0
        following = parser["init_state"]
        try:
            while following is not None:
                entered += following in idle
                if entered > jumps.MAX_REPEATS:
                    packet.is_endless = True
                    return
                following = self._next_state(packet, states[following], value_sets)
        except ParserError as error:
            self._evaluator.set(packet, ["standard_metadata", "parser_error"], error.code)

    def _idle_states(self, states: dict[str, Json]) -> set[str]:
        """States from which a way leads back to them on which nothing is extracted."""
        without = {name for name, state in states.items() if not any(map(self._takes_bytes, state["parser_ops"]))}
        steps = {
            (name, transition["next_state"])
            for name in without
            for transition in states[name]["transitions"]
            if transition["next_state"] in without
        }
        for _ in without:  # each time, ways have up to one more step
            steps |= {(first, last) for first, middle in steps for other, last in steps if middle == other}
        return {first for first, last in steps if first == last}

    def _takes_bytes(self, operation: Json) -> bool:
        if operation["op"] not in ("extract", "extract_VL"):
            return False
        target = operation["parameters"][0]
        if target["type"] == "union_stack":
            [header, *_] = self._elements(target["value"])
        elif target["type"] == "stack":
            [header, *_] = self._evaluator.stacks[target["value"]]
        else:
            header = target["value"]
        kind = self._evaluator.headers[header]["header_type"]
        return any(width != "*" for _, width, *_ in self._evaluator.types[kind])

    def _next_state(self, packet: Packet, state: Json, value_sets: ValueSets) -> str | None:
        for operation in state["parser_ops"]:
            self._execute(packet, operation)
        key = b"".join(self._key_bytes(packet, part) for part in state["transition_key"])
        for transition in state["transitions"]:
            following: str | None = transition["next_state"]
            if transition["type"] == "default":
                return following
            if transition["type"] == "parse_vset":
                values = [int.from_bytes(self._key_bytes(packet, part), "big") for part in state["transition_key"]]
                members = value_sets.get(transition["value"], ())
                if any(all(takes(m, v) for v, m in zip(values, member, strict=True)) for member in members):
                    return following
                continue
            mask = int(transition["mask"] or "0x" + "ff" * len(key), 16)
            if int.from_bytes(key, "big") & mask == int(transition["value"], 16) & mask:
                return following
        return None

    def _execute(self, packet: Packet, operation: Json) -> None:
        evaluator = self._evaluator
        target, *others = operation["parameters"]
        match operation["op"]:
            case "extract":
                self._extract_into(packet, target, 0)
            case "extract_VL":
                self._extract_into(packet, target, evaluator.value(packet, others[0]))
            case "set":
                evaluator.set(packet, evaluator.reference(packet, target), evaluator.value(packet, others[0]))
            case "primitive":
                self._primitive(packet, target, ())
            case "verify":
                if not evaluator.value(packet, target):
                    raise ParserError(evaluator.value(packet, others[0]))
            case "advance":
                num_bytes, bits = divmod(evaluator.value(packet, target), 8)
                if bits:
                    raise ParserError(INVALID_ARGUMENT)
                if packet.position + num_bytes > len(packet.octets):
                    raise ParserError(PACKET_TOO_SHORT)
                packet.position += num_bytes
            case other:
                raise NotImplementedError(other)

    def _extract_into(self, packet: Packet, target: Json, variable_bits: int) -> None:
        """Extract a header, or the next element of a stack of headers or unions."""
        header = target["value"]
        if target["type"] == "regular":
            self._extract(packet, header, variable_bits)
            return
        if target["type"] == "union_stack":
            stack, elements = header[0], self._elements(header)
        else:
            stack, elements = header, self._evaluator.stacks[header]
        number = packet.following.get(stack, 0)
        if number == len(elements):
            raise ParserError(STACK_OUT_OF_BOUNDS)
        self._extract(packet, elements[number], variable_bits)
        packet.following[stack] = number + 1

    def _elements(self, target: list[str]) -> list[str]:
        """Headers of one member of a stack of unions."""
        name, member = target
        return [
            header
            for union in self._evaluator.unions
            if union.startswith(f"{name}[")
            for header in self._evaluator.unions[union]
            if header.endswith(f".{member}")
        ]

    def _extract(self, packet: Packet, header: str, variable_bits: int) -> None:
        kind = next(
            k
            for k in self._evaluator.program["header_types"]
            if k["name"] == self._evaluator.headers[header]["header_type"]
        )
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
        self._statements.make_valid(packet, header)
        packet.position += num_bytes

    def _key_bytes(self, packet: Packet, part: Json) -> bytes:
        value, width = self._evaluator.value(packet, part), self._key_bits(part)
        return (value & (1 << width) - 1).to_bytes((width + 7) // 8, "big")

    def _key_bits(self, part: Json) -> int:
        if part["type"] == "lookahead":
            return int(part["value"][1])
        if part["type"] == "stack_field":
            return self._evaluator.width([self._evaluator.stacks[part["value"][0]][0], part["value"][1]])
        return self._evaluator.width(part["value"])
