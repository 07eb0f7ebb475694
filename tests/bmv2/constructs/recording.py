"""``python -m tests.bmv2.constructs.recording``: compile the programs and have a live BMv2 answer anew.

Needs p4c-bm2-ss and simple_switch_grpc; what it writes is committed.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bmv2.constructs.programs import FOLDER, MANIFEST, NAMES, construct, source_hashes
from tests.bmv2.constructs.sampling import sample
from tests.bmv2.constructs.switches import answer
from tests.bmv2.live import VARIABLE, find_bmv2, running, version_of
from tests.bmv2.session import Answer, Recording
from tests.bmv2.vectors import FOLDER as VECTORS
from tests.bmv2.vectors import Vectors, write_vectors

SAMPLED_SEEDS = range(3)
"""Seeds of the sessions among the vectors."""

COMPILER = "p4c-bm2-ss"


def main() -> None:
    """Rewrite what p4c makes of the programs, and every file of vectors."""
    command = find_bmv2()
    if command is None:
        sys.exit(f"simple_switch_grpc is not on PATH, and {VARIABLE} does not name it")
    compile_programs()
    folder = VECTORS / "constructs"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        found = construct(name)
        with running(command, found.pipeline.message) as bmv2:
            recordings = []
            for seed in SAMPLED_SEEDS:
                session = sample(name, seed)
                recordings.append(Recording(session, ((),) * len(session.packets), Answer(answer(bmv2, session), {})))
        write_vectors(folder / f"{name}.json", Vectors(version_of(command), found.sha256, tuple(recordings)))


def compile_programs() -> None:
    """Rewrite BMv2 JSON, P4Info and manifest."""
    for name in NAMES:
        program, p4info = compiled(name)
        (FOLDER / f"{name}.json").write_text(program)
        (FOLDER / f"{name}.p4info.txtpb").write_text(p4info)
    MANIFEST.write_text(json.dumps({"p4c": compiler_version(), "sources": source_hashes()}, indent=2) + "\n")


def compiler_version() -> str:
    """What p4c says its version is."""
    told = subprocess.run([COMPILER, "--version"], check=True, text=True, capture_output=True)
    found = re.search(r"Version (\S+)", told.stdout + told.stderr)
    return found.group(1) if found else "unknown"


def compiled(name: str) -> tuple[str, str]:
    """BMv2 JSON and P4Info that p4c makes of a program."""
    with tempfile.TemporaryDirectory() as made:
        program, p4info = Path(made) / "program.json", Path(made) / "p4info.txtpb"
        arguments = ["--arch", "v1model", "--p4runtime-files", str(p4info), "-o", str(program), f"{name}.p4"]
        subprocess.run([COMPILER, *arguments], check=True, cwd=FOLDER)
        document = _without_places(json.loads(program.read_text()))
        return json.dumps(document, separators=(",", ":")) + "\n", p4info.read_text()


def _without_places(node: Any) -> Any:
    """The same without where in the source each part was: half of the file, and of no use to a test."""
    if isinstance(node, dict):
        return {key: _without_places(value) for key, value in node.items() if key != "source_info"}
    return [_without_places(part) for part in node] if isinstance(node, list) else node


if __name__ == "__main__":
    main()
