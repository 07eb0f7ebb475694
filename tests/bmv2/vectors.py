"""Recordings as JSON: one file names BMv2's version, the program's hash and every distinct entry once."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy.proto import p4r
from google.protobuf import json_format

from p4src import PROGRAM
from tests.bmv2.session import Answer, Packet, Recording, Session

FOLDER = Path(__file__).resolve().parent / "vectors"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Vectors:
    """One file: what a version of BMv2 answered, running the program with this SHA-256."""

    bmv2: str
    program_sha256: str
    recordings: tuple[Recording, ...]


def program_sha256(program: Path = PROGRAM) -> str:
    """SHA-256 of a program as it is now."""
    return hashlib.sha256(program.read_bytes()).hexdigest()


def read_vectors(path: Path) -> Vectors:
    """The recordings of a file."""
    document = json.loads(path.read_text())
    entries = [json_format.ParseDict(entry, p4r.Entity()) for entry in document["entries"]]
    recordings = tuple(_decode(session, entries) for session in document["sessions"])
    return Vectors(document["bmv2"], document["program_sha256"], recordings)


def write_vectors(path: Path, vectors: Vectors) -> None:
    """Write a file, one line per entry and session."""
    places: dict[str, int] = {}
    sessions = [_encode(recording, places) for recording in vectors.recordings]
    header = f'"bmv2":{json.dumps(vectors.bmv2)},\n"program_sha256":{json.dumps(vectors.program_sha256)}'
    path.write_text(
        f'{{{header},\n"entries":[\n{_lines(places)}\n],\n"sessions":[\n{_lines(map(_compact, sessions))}\n]}}\n'
    )


def _encode(recording: Recording, places: dict[str, int]) -> Json:
    session, answer = recording.session, recording.answer
    entries = [_compact(json_format.MessageToDict(e, preserving_proto_field_name=True)) for e in session.entries]
    packets = [
        {"in": _packet(packet), "out": [_packet(sent) for sent in packets]} | ({"mask": mask} if mask else {})
        for packet, packets, mask in zip(session.packets, answer.sent, recording.masks, strict=True)
    ]
    numbers = [places.setdefault(entry, len(places)) for entry in entries]
    return {"entries": numbers, "packets": packets, "counters": answer.counts}


def _decode(document: Json, entries: list[p4r.Entity]) -> Recording:
    packets = document["packets"]
    session = Session(
        tuple(entries[number] for number in document["entries"]), tuple(_parsed(packet["in"]) for packet in packets)
    )
    masks = tuple(tuple((start, length) for start, length in packet.get("mask", ())) for packet in packets)
    counts = {
        name: {int(cell): (packets, octets) for cell, (packets, octets) in cells.items()}
        for name, cells in document["counters"].items()
    }
    sent = tuple(tuple(_parsed(sent) for sent in packet["out"]) for packet in packets)
    return Recording(session, masks, Answer(sent, counts))


def _packet(packet: Packet) -> list[int | str]:
    return [packet.port, packet.octets.hex()]


def _parsed(document: list[Any]) -> Packet:
    port, octets = document
    return Packet(port, bytes.fromhex(octets))


def _compact(document: Json) -> str:
    return json.dumps(document, separators=(",", ":"))


def _lines(parts: Iterable[str]) -> str:
    return ",\n".join(parts)
