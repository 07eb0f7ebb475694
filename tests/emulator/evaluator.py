"""The values of BMv2 JSON for one packet, with Python's integers: fields, expressions, hashes and checksums."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.emulator.packets import internet_checksum
from tests.emulator.programs import Json


@dataclass
class Packet:
    """A packet on its way through the program: fields by header and name, the valid headers, what was not parsed."""

    octets: bytes
    position: int = 0
    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)

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


class Evaluator:
    """Knows a program's header types and calculations."""

    def __init__(self, program: Json) -> None:
        self.program = program
        self.types = {kind["name"]: kind["fields"] for kind in program["header_types"]}
        self.headers = {header["name"]: header for header in program["headers"]}
        self._calculations = {calculation["name"]: calculation for calculation in program["calculations"]}

    def value(self, packet: Packet, node: Json, arguments: tuple[int, ...] = ()) -> int:
        """Value of a JSON operand; ``arguments`` are those of the action that it stands in."""
        kind, value = node["type"], node["value"]
        match kind:
            case "field":
                return self.get(packet, value)
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

    def _operation(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> int:
        operation = node["op"]
        if operation == "valid":
            return node["right"]["value"] in packet.valid
        if operation == "?":
            chosen = "left" if self.value(packet, node["cond"], arguments) else "right"
            return self.value(packet, node[chosen], arguments)
        right = self.value(packet, node["right"], arguments)
        if operation == "usat_cast":
            return min(max(0, self.value(packet, node["left"], arguments)), (1 << right) - 1)
        if operation in _UNARY:
            return _UNARY[operation](right)
        return _BINARY[operation](self.value(packet, node["left"], arguments), right)

    def get(self, packet: Packet, reference: list[str]) -> int:
        """A field, or a header's validity."""
        header, name = reference
        return int(header in packet.valid) if name == "$valid$" else packet.fields.get((header, name), 0)

    def set(self, packet: Packet, reference: list[str], value: int) -> None:
        """Write a field; bits that do not fit are lost."""
        packet.fields[reference[0], reference[1]] = value & (1 << self.width(reference)) - 1

    def width(self, reference: list[str]) -> int:
        """Bits of a field."""
        entries = self.types[self.headers[reference[0]]["header_type"]]
        return next(int(entry[1]) for entry in entries if entry[0] == reference[1])

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

    def hash(self, packet: Packet, calculation: Json) -> int:
        """Hash over the bits of a calculation's fields, padded to whole bytes; headers that are not valid have none."""
        value = width = 0
        for part in calculation["input"]:
            if part["type"] == "field" and not self._is_there(packet, part["value"][0]):
                continue
            bits = part["bitwidth"] if part["type"] == "hexstr" else self.width(part["value"])
            value, width = value << bits | self.value(packet, part), width + bits
        padding = -width % 8
        octets = (value << padding).to_bytes((width + padding) // 8, "big")
        match calculation["algo"]:
            case "crc32":
                return zlib.crc32(octets)
            case "csum16":
                return internet_checksum(octets)
            case "identity":
                return int.from_bytes(octets, "big")
        raise NotImplementedError(calculation["algo"])


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
