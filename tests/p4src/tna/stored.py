"""Programs as they are stored: reduced JSON, compressed, with the hashes of the sources that p4c made it of."""

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path

from p4src import compile as p4_sources
from tests.p4src.tna.ir import load
from tests.p4src.tna.program import TranslatedProgram
from tests.p4src.tna.reduce import Json

FOLDER = Path(__file__).resolve().parent / "programs"
SOURCE_HASHES = FOLDER / "sources.json"

SMALL_PROGRAMS = ("checksums", "hashes", "registers", "selects", "tables")
WITHOUT_VECTORS = ("polynomial",)
"""p4testgen cannot compute what it does."""


def path_of(name: str) -> Path:
    """Where a program is stored."""
    return FOLDER / f"{name}.json.gz"


TRAINYARD = path_of("trainyard")
"""What p4c's mid-end makes of Trainyard's program for Tofino."""


def source_hashes() -> dict[str, str]:
    """SHA-256 of every source as it is now."""
    small = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.glob("*.p4"))}
    return small | p4_sources.source_hashes("tna")


def write(path: Path, reduced: Json) -> None:
    """Store a reduced program; equal programs are equal bytes."""
    text = json.dumps(reduced, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


@cache
def translated(path: Path) -> TranslatedProgram:
    """A stored program, ready to be started."""
    return TranslatedProgram(load(json.loads(gzip.decompress(path.read_bytes()))))
