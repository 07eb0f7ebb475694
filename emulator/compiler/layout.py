"""Layout of a program's fields: their words while a packet is processed, and their bytes on the wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emulator.compiler.exposure import exposed_fields
from emulator.compiler.jumps import repeats

Json = dict[str, Any]

WORD_BITS = 64


class UnsupportedError(Exception):
    """The program uses a construct that the emulator does not execute; names the construct and its source line."""

    def __init__(self, construct: str, node: Json | None = None) -> None:
        source = (node or {}).get("source_info")
        place = f"{source['filename']}:{source['line']}: " if source else ""
        super().__init__(f"{place}{construct} is not supported by the emulator")
        self.construct = construct
        self.has_place = source is not None


@contextmanager
def part_of(node: Json, where: str = "") -> Iterator[None]:
    """Add the source place of ``node``, and ``where``, to an UnsupportedError that has none."""
    try:
        yield
    except UnsupportedError as error:
        if error.has_place:
            raise
        raise UnsupportedError(f"{error.construct} in {where}" if where else error.construct, node) from None


def words_of(bits: int) -> int:
    """Return the number of words that ``bits`` bits take."""
    return max(1, -(-bits // WORD_BITS))


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance: its words and its place in the header.

    ``word`` is the first word and holds the lowest bits. A signed field is kept in two's complement.
    """

    name: str
    bits: int
    word: int
    bit_offset: int
    signed: bool = False

    @cached_property
    def mask(self) -> int:
        """Bit mask of the whole field."""
        return (1 << self.bits) - 1

    @property
    def words(self) -> range:
        """Words of the field, lowest bits first."""
        return range(self.word, self.word + words_of(self.bits))


@dataclass(frozen=True)
class Header:
    """A header or metadata instance; ``valid_word`` holds its validity."""

    name: str
    metadata: bool
    fields: dict[str, Field]
    valid_word: int

    @cached_property
    def num_bytes(self) -> int:
        """Bytes of the header on the wire."""
        return sum(field.bits for field in self.fields.values()) // 8


@dataclass(frozen=True)
class Stack:
    """A header stack; ``next_word`` holds the index of the element that the parser extracts next."""

    name: str
    headers: tuple[Header, ...]
    next_word: int


class Layout:
    """Words in which a packet is processed: fields, validity of headers, and stacks.

    Words that are 0 when a packet arrives come first: validity, stacks, fields of headers that may be read while the
    header is invalid (``exposed_words``), and metadata. The offset of the payload comes last. ``exit_word`` is not 0
    after an action has ended the control, ``repeats_word`` after one has repeated a loop too often; a program without
    ``exit``, or without loops in actions, has no such word.
    """

    def __init__(self, program: Json) -> None:
        if program.get("header_union_stacks"):
            raise UnsupportedError(f"header union stacks ({program['header_union_stacks'][0]['name']})")
        types = {header_type["name"]: header_type for header_type in program["header_types"]}
        instances = sorted(program["headers"], key=lambda header: not header["metadata"])
        self.headers: dict[str, Header] = {}
        self.num_words = 0
        valid_words = {instance["name"]: self._take(1) for instance in instances}
        next_words = {stack["name"]: self._take(1) for stack in program.get("header_stacks", ())}
        self.exit_word = self._take(1) if _has_exit(program) else None
        self.repeats_word = self._take(1) if repeats(program["actions"]) else None
        exposed = self._place_exposed(program, types)
        self.first_metadata_word = self.initial_words = self.num_words
        for instance in instances:
            header = self._place(instance, types[instance["header_type"]], valid_words[instance["name"]], exposed)
            self.headers[instance["name"]] = header
            if instance["metadata"]:
                self.initial_words = self.num_words
        self.payload_word = self._take(1)
        self._bits = dict.fromkeys(valid_words.values(), 1)
        for header in self.headers.values():
            for field in header.fields.values():
                if not field.signed:
                    self._bits |= {
                        index: min(field.bits - WORD_BITS * part, WORD_BITS) for part, index in enumerate(field.words)
                    }
        by_id = {instance.get("id"): self.headers[instance["name"]] for instance in instances}
        self.stacks = {
            stack["name"]: Stack(
                stack["name"], tuple(by_id[number] for number in stack["header_ids"]), next_words[stack["name"]]
            )
            for stack in program.get("header_stacks", ())
        }
        self.unions = {
            union["name"]: tuple(by_id[number] for number in union["header_ids"])
            for union in program.get("header_unions", ())
        }

    def field(self, reference: list[str]) -> Field:
        """Return the field of a JSON reference [header, field]."""
        header, name = reference
        if name == "$valid$":
            return Field(f"{header}.$valid$", 1, self.headers[header].valid_word, 0)
        return self.headers[header].fields[name]

    def bits_of(self, index: int) -> int:
        """Return the number of bits used of a word; the others are 0."""
        return self._bits.get(index, WORD_BITS)

    def siblings(self, header: Header) -> list[Header]:
        """Return the other headers of the same union, of which at most one is valid."""
        return [other for union in self.unions.values() if header in union for other in union if other is not header]

    def _place_exposed(self, program: Json, types: dict[str, Json]) -> dict[tuple[str, str], int]:
        """Reserve words for the fields that may be read while their header is invalid; return the first of each."""
        found, first = exposed_fields(program), self.num_words
        exposed = {
            (instance["name"], name): self._take(words_of(bits))
            for instance in program["headers"]
            for name, bits, *_ in types[instance["header_type"]]["fields"]
            if (instance["name"], name) in found and bits != "*"
        }
        self.exposed_words = range(first, self.num_words)
        return exposed

    def _place(self, instance: Json, header_type: Json, valid_word: int, exposed: dict[tuple[str, str], int]) -> Header:
        fields: dict[str, Field] = {}
        bit_offset = 0
        for name, bits, *flags in header_type["fields"]:
            qualified = f"{instance['name']}.{name}"
            signed, saturating = (*flags, False, False)[:2]
            if bits == "*":
                raise UnsupportedError(f"variable-length field {qualified}", header_type)
            if saturating:
                raise UnsupportedError(f"saturating field {qualified}", header_type)
            word = exposed.get((instance["name"], name))
            if word is None:
                word = self._take(words_of(bits))
            fields[name] = Field(qualified, bits, word, bit_offset, bool(signed))
            bit_offset += bits
        if not instance["metadata"] and bit_offset % 8:
            raise UnsupportedError(f"header {instance['name']} of {bit_offset} bits (not whole bytes)", header_type)
        return Header(instance["name"], instance["metadata"], fields, valid_word)

    def _take(self, count: int) -> int:
        """Reserve words and return the first one."""
        first = self.num_words
        self.num_words += count
        return first


def _has_exit(program: Json) -> bool:
    return any(primitive["op"] == "exit" for action in program["actions"] for primitive in action["primitives"])
