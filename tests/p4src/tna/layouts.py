"""Types and where their values are kept: every field of every struct is one entry of a packet's dictionary."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.p4src.tna.ir import Program, Struct

VALID = "$valid"


@dataclass(frozen=True, slots=True)
class Number:
    """A type of numbers: bits, and whether the highest is a sign. Truths are numbers of one bit."""

    bits: int
    is_signed: bool = False

    @property
    def mask(self) -> int:
        """All bits set."""
        return (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field of a struct, with the path that leads to it."""

    path: str
    number: Number


class Layouts:
    """The program's structs and headers by their names."""

    def __init__(self, program: Program) -> None:
        self._structs: Mapping[str, Struct] = {kind.name: kind for kind in program.objects if isinstance(kind, Struct)}

    def is_header(self, type_text: str) -> bool:
        """Whether values of a type can be invalid."""
        struct = self._structs.get(type_text)
        return struct is not None and struct.node == "Type_Header"

    def is_struct(self, type_text: str) -> bool:
        """Whether a type has fields."""
        return type_text in self._structs

    def leaves(self, type_text: str, path: str) -> Iterator[Leaf]:
        """The fields of a value at ``path``, in order; a header's validity is none."""
        struct = self._structs.get(type_text)
        if struct is None:
            yield Leaf(path, number(type_text))
            return
        for part in struct.fields:
            yield from self.leaves(part.type, f"{path}.{part.name}")

    def headers(self, type_text: str, path: str) -> Iterator[str]:
        """Paths of all headers in a value at ``path``."""
        struct = self._structs.get(type_text)
        if struct is None:
            return
        if struct.node == "Type_Header":
            yield path
            return
        for part in struct.fields:
            yield from self.headers(part.type, f"{path}.{part.name}")

    def undefined_bits(self, type_text: str, path: str) -> dict[str, int]:
        """For every field of a value that nobody has written, how many bits of it can be anything; invalid headers."""
        found = {leaf.path: leaf.number.bits - leaf.number.is_signed for leaf in self.leaves(type_text, path)}
        return found | {f"{header}.{VALID}": 0 for header in self.headers(type_text, path)}

    def bits(self, type_text: str) -> int:
        """How many bits a value has."""
        return sum(leaf.number.bits for leaf in self.leaves(type_text, ""))


def number(type_text: str) -> Number:
    """A type of numbers; raises ``ValueError`` for any other."""
    if type_text == "bool":
        return Number(1)
    matched = re.fullmatch(r"(bit|int)<(\d+)>", type_text)
    if matched is None:
        raise ValueError(f"{type_text} is no type of numbers")
    return Number(int(matched[2]), matched[1] == "int")
