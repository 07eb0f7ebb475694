"""Compiles the programs and records p4testgen's vectors for them, with p4c's tools.

Run it with paths of ``p4c-barefoot``, of ``p4testgen`` and of the folders of ``core.p4`` and ``tna.p4``::

    python -m tests.p4src.tna.recording P4C_BAREFOOT P4TESTGEN FOLDER...

The option ``--toJSON`` of p4c's compiler writes the IR as it is before the mid-end. A compiler for this module is
changed to write it where it logs "After midend" (``p4c-barefoot.cpp``), and to stop there.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4src import SOURCES
from tests.p4src.tna import stored, vectors
from tests.p4src.tna.ptf import vectors_of
from tests.p4src.tna.reduce import Json, reduced

_LANGUAGE = ("--target", "tofino", "--arch", "tna", "--std", "p4-16", "-D__TARGET_TOFINO__=1")

# What p4c adds to short egress parsers is of no meaning for what leaves.
_WITHOUT_PADDING = "--disable-parse-min-depth-limit"

_SMALL_LIMITS = (
    ("--path-selection", "DEPTH_FIRST", "--max-tests", "60"),
    ("--path-selection", "RANDOM_BACKTRACK", "--max-tests", "60", "--output-packet-only"),
)
_TRAINYARD_LIMITS = (
    ("--path-selection", "DEPTH_FIRST", "--max-tests", "120"),
    ("--path-selection", "RANDOM_BACKTRACK", "--max-tests", "150"),
)


@dataclass(frozen=True, slots=True)
class Tools:
    """The compiler, the generator of tests, and the folders that both include from."""

    compiler: Path
    generator: Path
    includes: tuple[Path, ...]

    def mid_end(self, program: Path) -> Json:
        """The reduced IR of a program; raises ``CalledProcessError`` where p4c refuses it."""
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "ir.json"
            run([self.compiler, *self._options(), _WITHOUT_PADDING, "-o", folder, "--toJSON", dump, program])
            return reduced(json.loads(dump.read_text()))

    def vectors(self, program: Path, limits: Iterable[Sequence[str]]) -> list[vectors.Vector]:
        """Vectors for a program, of a fixed seed, for each way to choose paths through it."""
        found: list[vectors.Vector] = []
        for limit in limits:
            with tempfile.TemporaryDirectory() as folder:
                options = ["--seed", "1", "--test-backend", "PTF", "--out-dir", folder, *limit]
                run([self.generator, *self._options(), *options, program])
                for path in sorted(Path(folder).glob("*.py")):
                    found += vectors_of(path.read_text())
        return found

    def _options(self) -> list[str]:
        return [*_LANGUAGE, *(option for folder in self.includes for option in ("-I", str(folder)))]


def run(command: Iterable[object]) -> None:
    """Run a program without its messages."""
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def main(tools: Tools) -> None:
    """Record everything anew."""
    trainyard = SOURCES / "tna" / "trainyard.p4"
    stored.write(stored.TRAINYARD, tools.mid_end(trainyard))
    vectors.write(vectors.FOLDER / stored.TRAINYARD.name, tools.vectors(trainyard, _TRAINYARD_LIMITS))
    for name in (*stored.SMALL_PROGRAMS, *stored.WITHOUT_VECTORS):
        program = stored.FOLDER / f"{name}.p4"
        stored.write(stored.path_of(name), tools.mid_end(program))
        if name in stored.SMALL_PROGRAMS:
            vectors.write(vectors.FOLDER / stored.path_of(name).name, tools.vectors(program, _SMALL_LIMITS))
    stored.SOURCE_HASHES.write_text(json.dumps(stored.source_hashes(), indent=2) + "\n")


if __name__ == "__main__":
    main(Tools(Path(sys.argv[1]), Path(sys.argv[2]), tuple(map(Path, sys.argv[3:]))))
