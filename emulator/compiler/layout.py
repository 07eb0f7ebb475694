"""Where a program's fields stand: the packet's row of words and the bytes on the wire."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]

MAX_FIELD_BITS = 64


class UnsupportedError(Exception):
    """The program uses something that the emulator does not execute; it names the construct and its source line."""

    def __init__(self, construct: str, node: Json | None = None) -> None:
        source = (node or {}).get("source_info")
        place = f"{source['filename']}:{source['line']}: " if source else ""
        super().__init__(f"{place}{construct} is not supported by the emulator")


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance: its word and its place in the header."""

    name: str
    bits: int
    word: int
    bit_offset: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Header:
    """A header or metadata instance; ``valid_word`` is where its validity stands."""

    name: str
    metadata: bool
    fields: dict[str, Field]
    valid_word: int

    @cached_property
    def num_bytes(self) -> int:
        return sum(field.bits for field in self.fields.values()) // 8


class Layout:
    """The words that a packet is processed in: one per field and per header's validity.

    First come those that are 0 when a packet comes, metadata and validity; last the one for where the payload starts.
    """

    def __init__(self, program: Json) -> None:
        for construct in ("header_stacks", "header_union_types", "header_unions", "header_union_stacks", "parse_vsets"):
            if program.get(construct):
                raise UnsupportedError(f"{construct.replace('_', ' ')} ({program[construct][0]['name']})")
        types = {header_type["name"]: header_type for header_type in program["header_types"]}
        instances = sorted(program["headers"], key=lambda header: not header["metadata"])
        self.headers: dict[str, Header] = {}
        valid_words = {instance["name"]: number for number, instance in enumerate(instances)}
        self.num_words = self.initial_words = len(instances)
        for instance in instances:
            header = self._place(instance, types[instance["header_type"]], valid_words[instance["name"]])
            self.headers[instance["name"]] = header
            if instance["metadata"]:
                self.initial_words = self.num_words
        self.payload_word, self.num_words = self.num_words, self.num_words + 1

    def field(self, reference: list[str]) -> Field:
        """The field that a JSON reference [header, field] names."""
        header, name = reference
        if name == "$valid$":
            return Field(f"{header}.$valid$", 1, self.headers[header].valid_word, 0)
        return self.headers[header].fields[name]

    def _place(self, instance: Json, header_type: Json, valid_word: int) -> Header:
        fields: dict[str, Field] = {}
        bit_offset = 0
        for name, bits, *signed in header_type["fields"]:
            qualified = f"{instance['name']}.{name}"
            if bits == "*":
                raise UnsupportedError(f"variable-length field {qualified}", header_type)
            if bits > MAX_FIELD_BITS:
                raise UnsupportedError(f"field {qualified} of {bits} bits (more than {MAX_FIELD_BITS})", header_type)
            if signed and signed[0] and not instance["metadata"]:
                raise UnsupportedError(f"signed field {qualified}", header_type)
            fields[name] = Field(qualified, bits, self.num_words, bit_offset)
            self.num_words += 1
            bit_offset += bits
        if not instance["metadata"] and bit_offset % 8:
            raise UnsupportedError(f"header {instance['name']} of {bit_offset} bits (not whole bytes)", header_type)
        return Header(instance["name"], instance["metadata"], fields, valid_word)
