"""Programs as they are stored: reduced JSON, compressed."""

import gzip
import json
from functools import cache
from pathlib import Path

import p4src
from tests.p4src.tna.ir import load
from tests.p4src.tna.program import TranslatedProgram
from tests.p4src.tna.reduce import Json

TRAINYARD = Path(p4src.__file__).resolve().parent / "build" / "tna" / "mid_end.json.gz"
"""What p4c's mid-end makes of Trainyard's program for Tofino."""

TRAINYARD_VECTORS = "trainyard.json.gz"

FOLDER = Path(__file__).resolve().parent / "programs"


def write(path: Path, reduced: Json) -> None:
    """Store a reduced program; equal programs are equal bytes."""
    text = json.dumps(reduced, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


@cache
def translated(path: Path) -> TranslatedProgram:
    """A stored program, ready to be started."""
    return TranslatedProgram(load(json.loads(gzip.decompress(path.read_bytes()))))
