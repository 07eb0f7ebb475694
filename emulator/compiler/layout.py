"""Layout of a program's fields: their words while a packet is processed, and their bytes on the wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emulator.compiler.exposure import exposed_fields
from emulator.compiler.idle_states import idle_states
from emulator.compiler.jumps import may_halt
from emulator.engine.state import OCTETS

Json = dict[str, Any]

WORD_BITS = 64

LENGTH = "$length"
_LENGTH_BITS = 16


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

    ``word`` is the first word and holds the lowest bits. A signed field is kept in two's complement. A variable-length
    field holds at most ``most_bytes`` bytes, from its highest bits on, followed by zeros; any other one has 0 there.
    """

    name: str
    bits: int
    word: int
    bit_offset: int
    signed: bool = False
    most_bytes: int = 0

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
    """A header or metadata instance; ``valid_word`` holds its validity.

    A variable-length field is the last one of the program's. Behind it stands ``LENGTH``, its number of bytes, which is
    no part of the packet.
    """

    name: str
    metadata: bool
    fields: dict[str, Field]
    valid_word: int

    @cached_property
    def num_bytes(self) -> int:
        """Bytes of the header on the wire, without those of a variable-length field."""
        return sum(field.bits for field in self.fixed_fields) // 8

    @cached_property
    def fixed_fields(self) -> tuple[Field, ...]:
        """Fields of the packet that always have the same width."""
        return tuple(field for name, field in self.fields.items() if name != LENGTH and not field.most_bytes)

    @cached_property
    def variable(self) -> Field | None:
        """Variable-length field, None if there is none."""
        return next((field for field in self.fields.values() if field.most_bytes), None)

    @property
    def length_word(self) -> int:
        """Word with the number of bytes of the variable-length field."""
        return self.fields[LENGTH].word


@dataclass(frozen=True)
class Stack:
    """A header stack; ``next_word`` holds the index of the element that the parser extracts next."""

    name: str
    headers: tuple[Header, ...]
    next_word: int


class Layout:
    """Words in which a packet is processed: fields, validity of headers, and stacks.

    Words that are 0 when a packet arrives come first: validity, stacks, fields of headers that may be read while the
    header is invalid (``exposed_words``), and metadata. The offset of the payload comes last, and behind it
    ``now_word``, the time in picoseconds, where entries of tables age. ``exit_word`` is not 0
    after an action has ended the control, ``halt_word`` after one, or the parser in its ``idle_states``, has halted the
    packet, which is then dropped, ``digest_word`` after one has asked for a digest, and ``longest_word`` after one has
    truncated the packet: it is one more than the most bytes that may leave. A program that does not has no such word.
    """

    def __init__(self, program: Json) -> None:
        types = {header_type["name"]: header_type for header_type in program["header_types"]}
        instances = sorted(program["headers"], key=lambda header: not header["metadata"])
        self.headers: dict[str, Header] = {}
        self.num_words = 0
        valid_words = {instance["name"]: self._take(1) for instance in instances}
        next_words = {
            stack["name"]: self._take(1)
            for kind in ("header_stacks", "header_union_stacks")
            for stack in program.get(kind, ())
        }
        sets = program.get("parse_vsets")
        self.state_parameters = "phv, octets, at, end, memory, block" if sets else "phv, octets, at, end"
        """Parameters of parser states, which read value sets from the switch's memory."""
        self.exit_word = self._take(1) if _has(program, "exit") else None
        self.digest_word = self._take(1) if _has(program, "generate_digest") else None
        self.longest_word = self._take(1) if _has(program, "truncate") else None
        self.idle_states = idle_states(program)
        self.halt_word = self._take(1) if self.idle_states or may_halt(program["actions"]) else None
        exposed = self._place_exposed(program, types)
        self.first_metadata_word = self.initial_words = self.num_words
        for instance in instances:
            header = self._place(instance, types[instance["header_type"]], valid_words[instance["name"]], exposed)
            self.headers[instance["name"]] = header
            if instance["metadata"]:
                self.initial_words = self.num_words
        self.payload_word = self._take(1)
        ages = any(table.get("support_timeout") for pipeline in program["pipelines"] for table in pipeline["tables"])
        self.now_word = self._take(1) if ages else None
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
        self.union_stacks = self._union_stacks(program, next_words)
        self.next_words = tuple(next_words.values())

    def _union_stacks(self, program: Json, next_words: dict[str, int]) -> dict[tuple[str, str], Stack]:
        """Return every stack of unions, taken apart: for each member of the union, a stack of its headers."""
        members = {
            kind["name"]: [name for name, _ in kind["headers"]] for kind in program.get("header_union_types", ())
        }
        unions = {union["id"]: self.unions[union["name"]] for union in program.get("header_unions", ())}
        return {
            (stack["name"], name): Stack(
                stack["name"],
                tuple(unions[number][position] for number in stack["header_union_ids"]),
                next_words[stack["name"]],
            )
            for stack in program.get("header_union_stacks", ())
            for position, name in enumerate(members[stack["union_type"]])
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
        exposure, first = exposed_fields(program), self.num_words
        kept_words: set[int] = set()
        exposed: dict[tuple[str, str], int] = {}
        for instance in program["headers"]:
            header_type = types[instance["header_type"]]
            for name, bits, *_ in header_type["fields"]:
                if (instance["name"], name) in exposure.fields:
                    most_bytes = _most_bytes(header_type) if bits == "*" else 0
                    exposed[instance["name"], name] = self._take(words_of(8 * most_bytes or bits))
                    if most_bytes:
                        exposed[instance["name"], LENGTH] = self._take(1)
                    if (instance["name"], name) in exposure.kept:
                        kept_words |= {*range(exposed[instance["name"], name], self.num_words)}
        self.exposed_words = range(first, self.num_words)
        self.kept_words = frozenset(kept_words)
        return exposed

    def _place(self, instance: Json, header_type: Json, valid_word: int, exposed: dict[tuple[str, str], int]) -> Header:
        fields: dict[str, Field] = {}
        bit_offset = 0
        for name, width, *flags in header_type["fields"]:
            bits, most_bytes = width, 0
            qualified = f"{instance['name']}.{name}"
            signed, saturating = (*flags, False, False)[:2]
            if LENGTH in fields:
                raise UnsupportedError(f"field {qualified} behind a variable-length field", header_type)
            if width == "*":
                most_bytes = _most_bytes(header_type)
                bits = WORD_BITS * words_of(8 * most_bytes)
            if saturating:
                raise UnsupportedError(f"saturating field {qualified}", header_type)
            word = exposed.get((instance["name"], name))
            if word is None:
                word = self._take(words_of(bits))
            fields[name] = Field(qualified, bits, word, bit_offset, bool(signed), most_bytes)
            if most_bytes:
                length = exposed.get((instance["name"], LENGTH))
                length = self._take(1) if length is None else length
                fields[LENGTH] = Field(f"{instance['name']}.{LENGTH}", _LENGTH_BITS, length, 0)
            else:
                bit_offset += bits
        if not instance["metadata"] and bit_offset % 8:
            raise UnsupportedError(f"header {instance['name']} of {bit_offset} bits (not whole bytes)", header_type)
        return Header(instance["name"], instance["metadata"], fields, valid_word)

    def _take(self, count: int) -> int:
        """Reserve words and return the first one."""
        first = self.num_words
        self.num_words += count
        return first


def _most_bytes(header_type: Json) -> int:
    """Return the most bytes that the variable-length field of a header may have."""
    fixed_bits = sum(bits for _, bits, *_ in header_type["fields"] if bits != "*")
    longest = header_type.get("max_length")
    if not isinstance(longest, int) or not 0 < longest - fixed_bits // 8 <= OCTETS:
        raise UnsupportedError(
            f"header type {header_type['name']!r} of at most {longest!r} bytes (a packet keeps {OCTETS})", header_type
        )
    return longest - int(fixed_bits) // 8


def _has(program: Json, operation: str) -> bool:
    return any(primitive["op"] == operation for action in program["actions"] for primitive in action["primitives"])
