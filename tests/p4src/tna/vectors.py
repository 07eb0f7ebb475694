"""Vectors of p4testgen: for one packet each, what the control plane has written, and what leaves."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "vectors"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """What an entry wants of one field; a prefix where it has a length, else all bits, or those of a mask."""

    field: str
    value: int
    mask: int | None = None
    prefix_length: int | None = None


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """An entry of a table, or its default action where there is no key."""

    table: str
    key: tuple[KeyPart, ...] | None
    action: str
    arguments: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RegisterCell:
    """What a cell of a register holds before: a number, or one for each field of a pair."""

    register: str
    index: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that leaves; bits of ``ignored`` (first, how many) nobody can foretell."""

    port: int
    octets: str
    ignored: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """One packet; octets are in hexadecimal digits."""

    entries: tuple[VectorEntry, ...]
    registers: tuple[RegisterCell, ...]
    port: int
    octets: str
    output: Output | None


def write(path: Path, vectors: list[Vector]) -> None:
    """Store vectors, one a line; equal vectors are equal bytes."""
    lines = ",\n".join(json.dumps(asdict(vector), separators=(",", ":")) for vector in vectors)
    path.write_bytes(gzip.compress(f"[\n{lines}\n]\n".encode(), 9, mtime=0))


def read(path: Path) -> Iterator[Vector]:
    """Stored vectors."""
    for document in json.loads(gzip.decompress(path.read_bytes())):
        yield _vector(document)


def _vector(document: dict[str, Any]) -> Vector:
    entries = tuple(
        VectorEntry(
            entry["table"],
            None if entry["key"] is None else tuple(KeyPart(**part) for part in entry["key"]),
            entry["action"],
            entry["arguments"],
        )
        for entry in document["entries"]
    )
    registers = tuple(
        RegisterCell(cell["register"], cell["index"], tuple(cell["values"])) for cell in document["registers"]
    )
    output = document["output"]
    sent = output and Output(output["port"], output["octets"], tuple((at, bits) for at, bits in output["ignored"]))
    return Vector(entries, registers, document["port"], document["octets"], sent)
