"""The programs: their sources, what p4c made of them, and both loaded."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from emulator.compiler.program import Program, compile_program
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from tests.emulator.programs import Json

FOLDER = Path(__file__).resolve().parent / "programs"
MANIFEST = FOLDER / "manifest.json"
NAMES = sorted(path.stem for path in FOLDER.glob("*.p4"))


@dataclass(frozen=True)
class Construct:
    """One of the programs."""

    name: str
    document: Json
    pipeline: Pipeline
    program: Program

    @property
    def sha256(self) -> str:
        """SHA-256 of the BMv2 JSON."""
        return hashlib.sha256(self.pipeline.message.p4_device_config).hexdigest()


@cache
def construct(name: str) -> Construct:
    """A program by its name."""
    text = (FOLDER / f"{name}.json").read_text()
    pipeline = compiled_pipeline((FOLDER / f"{name}.p4info.txtpb").read_text(), text.encode())
    return Construct(name, json.loads(text), pipeline, compile_program(text))


def source_hashes() -> dict[str, str]:
    """SHA-256 of each source."""
    return {name: hashlib.sha256((FOLDER / f"{name}.p4").read_bytes()).hexdigest() for name in NAMES}
