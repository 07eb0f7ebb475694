"""Compiles the small programs and records p4testgen's vectors: ``python -m tests.p4src.tna.recording BUILD``.

BUILD is p4c's build folder with the Tofino back end and p4testgen, and with ``mid_end_json.patch`` applied: as it is,
p4c writes the IR as JSON before its mid-end only.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import p4src
from tests.p4src.tna import stored, vectors
from tests.p4src.tna.ptf import vectors_of
from tests.p4src.tna.reduce import Json, reduced

TRAINYARD = Path(p4src.__file__).resolve().parent / "tna" / "trainyard.p4"
SMALL_PROGRAMS = ("selects", "tables", "registers", "hashes", "checksums")
SMALL_MAX_TESTS, TRAINYARD_MAX_TESTS = 100, 300

# The padding that p4c gives short egress parsers is of no meaning for what leaves.
_WITHOUT_PADDING = "--disable-parse-min-depth-limit"


@dataclass(frozen=True, slots=True)
class Tools:
    """p4c's programs in a build folder."""

    build: Path

    def mid_end(self, program: Path) -> Json:
        """The reduced IR of a program; raises ``CalledProcessError`` where p4c refuses it."""
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "ir.json"
            compiler = self.build / "backends/tofino/bf-p4c/p4c-barefoot"
            options = ["--target", "tofino", "--arch", "tna", "--std", "p4-16", _WITHOUT_PADDING, "-o", folder]
            run([compiler, *options, *self._includes(), "--toJSON", dump, program])
            return reduced(json.loads(dump.read_text()))

    def vectors(self, program: Path, max_tests: int) -> list[vectors.Vector]:
        """Vectors for a program, from a fixed seed."""
        with tempfile.TemporaryDirectory() as folder:
            generator = self.build / "backends/p4tools/modules/testgen/p4testgen"
            options = ["--target", "tofino", "--arch", "tna", "--std", "p4-16", "--seed", "1", "--test-backend", "PTF"]
            limits = ["--max-tests", str(max_tests), "--path-selection", "GREEDY_STATEMENT_SEARCH"]
            run([generator, *options, *limits, *self._includes(), "--out-dir", folder, program])
            files = sorted(Path(folder).glob("*.py"))
            return [vector for path in files for vector in vectors_of(path.read_text())]

    def _includes(self) -> list[str]:
        return ["-I", str(self.build / "p4include")]


def run(command: Iterable[object]) -> None:
    """Run a program; what it prints is shown where it fails."""
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def main(build: Path) -> None:
    """Record everything anew."""
    tools = Tools(build)
    for name in SMALL_PROGRAMS:
        program = stored.FOLDER / f"{name}.p4"
        stored.write(stored.FOLDER / f"{name}.json.gz", tools.mid_end(program))
        vectors.write(vectors.FOLDER / f"{name}.json.gz", tools.vectors(program, SMALL_MAX_TESTS))
    vectors.write(vectors.FOLDER / "trainyard.json.gz", tools.vectors(TRAINYARD, TRAINYARD_MAX_TESTS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
