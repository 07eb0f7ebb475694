"""The values of BMv2 JSON for one packet, with Python's integers: fields, expressions, hashes and checksums."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from typing import Any

from tests.emulator.programs import Json
from tests.p4src.packets import internet_checksum


@dataclass
class Packet:
    """A packet on its way through the program: fields by header and name, the valid headers, what was not parsed.

    Fields are what their bits are without a sign, variable-length ones in ``octets_of``. ``following`` is the next
    element of each header stack. ``is_endless`` says that an action or the parser has halted the packet, ``longest``
    how many of its bytes may leave.
    """

    octets: bytes
    position: int = 0
    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    following: dict[str, int] = field(default_factory=dict)
    octets_of: dict[tuple[str, str], bytes] = field(default_factory=dict)
    has_exited: bool = False
    is_endless: bool = False
    longest: int | None = None

    def bits(self, offset: int, width: int) -> int:
        """Bits behind what has been parsed."""
        rest = self.octets[self.position :]
        return int.from_bytes(rest, "big") >> 8 * len(rest) - offset - width & (1 << width) - 1


class ParserError(Exception):
    """The parser stops with this error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


PACKET_TOO_SHORT = 1
HEADER_TOO_SHORT = 4
STACK_OUT_OF_BOUNDS = 3


class Evaluator:
    """Knows a program's header types and calculations."""

    def __init__(self, program: Json) -> None:
        self.program = program
        self.types = {kind["name"]: kind["fields"] for kind in program["header_types"]}
        self.headers = {header["name"]: header for header in program["headers"]}
        by_id = {header.get("id"): header["name"] for header in program["headers"]}
        self.stacks = {
            stack["name"]: [by_id[number] for number in stack["header_ids"]]
            for stack in program.get("header_stacks", ())
        }
        self.unions = {
            union["name"]: [by_id[number] for number in union["header_ids"]]
            for union in program.get("header_unions", ())
        }
        union_names = {union.get("id"): union["name"] for union in program.get("header_unions", ())}
        members = {kind["name"]: len(kind["headers"]) for kind in program.get("header_union_types", ())}
        self.union_stacks = {
            stack["name"]: [
                [self.unions[union_names[number]][position] for number in stack["header_union_ids"]]
                for position in range(members[stack["union_type"]])
            ]
            for stack in program.get("header_union_stacks", ())
        }
        self._calculations = {calculation["name"]: calculation for calculation in program["calculations"]}

    def value(self, packet: Packet, node: Json, arguments: tuple[int, ...] = ()) -> int:
        """Value of a JSON operand; ``arguments`` are those of the action that it stands in."""
        kind, value = node["type"], node["value"]
        match kind:
            case "field" | "stack_field":
                return self.get(packet, self.reference(packet, node, arguments))
            case "hexstr":
                return int(value, 16)
            case "bool":
                return int(value)
            case "runtime_data" | "local":
                return arguments[value]
            case "lookahead":
                if packet.position + (sum(value) + 7) // 8 > len(packet.octets):
                    raise ParserError(PACKET_TOO_SHORT)
                return packet.bits(*value)
            case "expression":
                return (
                    self._operation(packet, value, arguments) if "op" in value else self.value(packet, value, arguments)
                )
        raise NotImplementedError(kind)

    def header(self, packet: Packet, node: Json, arguments: tuple[int, ...] = ()) -> str | None:
        """Name of the header that a node stands for; None outside of a stack."""
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        if node["type"] == "header":
            return str(node["value"])
        assert node["value"]["op"] == "dereference_header_stack"
        elements = self.stacks[node["value"]["left"]["value"]]
        index = self.value(packet, node["value"]["right"], arguments)
        return elements[index] if 0 <= index < len(elements) else None

    def reference(self, packet: Packet, node: Json, arguments: tuple[int, ...] = ()) -> list[str] | None:
        """Header and field that a node stands for; None behind the end of a stack."""
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        if node["type"] == "field":
            return list(node["value"])
        if node["type"] == "stack_field":
            stack, name = node["value"]
            if packet.following.get(stack, 0) == 0:
                raise ParserError(STACK_OUT_OF_BOUNDS)
            return [self.stacks[stack][packet.following[stack] - 1], name]
        assert node["value"]["op"] == "access_field"
        header = self.header(packet, node["value"]["left"], arguments)
        if header is None:
            return None
        return [header, self.types[self.headers[header]["header_type"]][node["value"]["right"]][0]]

    def _operation(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> int:
        operation = node["op"]
        match operation:
            case "valid":
                return self.header(packet, node["right"], arguments) in packet.valid
            case "valid_union":
                return any(header in packet.valid for header in self.unions[node["right"]["value"]])
            case "last_stack_index":
                return packet.following.get(node["right"]["value"], 0) - 1 & (1 << 64) - 1
            case "size_stack":
                return packet.following.get(node["right"]["value"], 0)
            case "access_field":
                return self.get(packet, self.reference(packet, {"type": "expression", "value": node}, arguments))
            case "?":
                chosen = "left" if self.value(packet, node["cond"], arguments) else "right"
                return self.value(packet, node[chosen], arguments)
        if operation in ("==", "!=") and self.is_variable(node["left"]):
            one, other = (packet.octets_of.get(tuple(node[side]["value"]), b"") for side in ("left", "right"))
            return (one == other) == (operation == "==")
        right = self.value(packet, node["right"], arguments)
        if operation in _UNARY:
            return _UNARY[operation](right)
        return _BINARY[operation](self.value(packet, node["left"], arguments), right)

    def get(self, packet: Packet, reference: list[str] | None) -> int:
        """A field with its sign, or a header's validity; 0 behind the end of a stack."""
        if reference is None:
            return 0
        header, name = reference
        if name == "$valid$":
            return int(header in packet.valid)
        value = packet.fields.get((header, name), 0)
        _, width, *flags = self._entry(reference)
        return _twos_complement(value, width) if flags and flags[0] else value

    def set(self, packet: Packet, reference: list[str] | None, value: int) -> None:
        """Write a field; bits that do not fit are lost."""
        if reference is not None:
            packet.fields[reference[0], reference[1]] = value & (1 << self.width(reference)) - 1

    def is_variable(self, node: Json) -> bool:
        """Whether a node names a variable-length field."""
        return node["type"] == "field" and node["value"][1] != "$valid$" and self._entry(node["value"])[1] == "*"

    def width(self, reference: list[str]) -> int:
        """Bits of a field."""
        return int(self._entry(reference)[1])

    def _entry(self, reference: list[str]) -> list[Any]:
        entries = self.types[self.headers[reference[0]]["header_type"]]
        return next(list(entry) for entry in entries if entry[0] == reference[1])

    def checksums(self, packet: Packet, purpose: str) -> list[Json]:
        """The checksums that a packet has to be verified for, or updated."""
        return [
            checksum
            for checksum in self.program["checksums"]
            if checksum[purpose] and self.value(packet, checksum.get("if_cond") or {"type": "bool", "value": True})
        ]

    def _is_there(self, packet: Packet, header: str) -> bool:
        return self.headers[header]["metadata"] or header in packet.valid

    def calculated(self, packet: Packet, name: str) -> int:
        """Value of a named calculation."""
        return self.hash(packet, self._calculations[name])

    def _parts(self, part: Json) -> list[Json]:
        """A header stands for all of its fields."""
        if part["type"] != "header":
            return [part]
        entries = self.types[self.headers[part["value"]]["header_type"]]
        return [{"type": "field", "value": [part["value"], name]} for name, *_ in entries]

    def hash(self, packet: Packet, calculation: Json) -> int:
        """Hash over the bits of a calculation's fields, padded to whole bytes; headers that are not valid have none."""
        value = width = 0
        for part in (part for whole in calculation["input"] for part in self._parts(whole)):
            if part["type"] == "field" and not self._is_there(packet, part["value"][0]):
                continue
            if self.is_variable(part):
                held = packet.octets_of.get(tuple(part["value"]), b"")
                value, width = value << 8 * len(held) | int.from_bytes(held, "big"), width + 8 * len(held)
                continue
            bits = part["bitwidth"] if part["type"] == "hexstr" else self.width(part["value"])
            value, width = value << bits | self.value(packet, part) & (1 << bits) - 1, width + bits
        padding = -width % 8
        octets = (value << padding).to_bytes((width + padding) // 8, "big")
        match calculation["algo"]:
            case "crc32" | "crc32_custom":
                return zlib.crc32(octets)
            case "crc16" | "crc16_custom":
                return _crc16(octets)
            case "xor16":
                padded = octets + bytes(len(octets) % 2)
                return reduce(xor, (int.from_bytes(padded[n : n + 2], "big") for n in range(0, len(padded), 2)), 0)
            case "csum16":
                return internet_checksum(octets)
            case "identity":
                return int.from_bytes(octets[:8], "big")
        raise NotImplementedError(calculation["algo"])


def _twos_complement(value: int, width: int) -> int:
    """What the low bits of a value mean as a signed number."""
    kept = value % (1 << width)
    return kept - (1 << width) if kept >> width - 1 else kept


def _crc16(octets: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    remainder = 0
    for octet in octets:
        remainder ^= octet
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xA001 if remainder & 1 else 0)
    return remainder


_UNARY: dict[str, Callable[[int], int]] = {
    "~": lambda right: ~right,
    "not": lambda right: not right,
    "d2b": lambda right: right != 0,
    "b2d": int,
}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "/": lambda left, right: left // right if right else 0,
    "%": lambda left, right: left % right if right else 0,
    "usat_cast": lambda left, right: min(max(0, left), (1 << right) - 1),
    "sat_cast": lambda left, right: min(max(-(1 << right - 1), left), (1 << right - 1) - 1),
    "two_comp_mod": _twos_complement,
    "==b": lambda left, right: left == right,
    "!=b": lambda left, right: left != right,
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}
