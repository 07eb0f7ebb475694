"""Compile the P4 program with p4c and record the hashes of its sources: ``python -m p4src.compile``.

Uses ``p4c-bm2-ss`` from PATH, or else the p4lang/p4c container. Running Trainyard needs neither, because the output is
committed.
"""

import hashlib
import json
import re
import shutil
import subprocess  # nosec B404 # runs the compiler, on our own sources
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from p4src import BUILD, MANIFEST, P4INFO, PROGRAM, SOURCES

_COMPILER = "p4c-bm2-ss"
_CONTAINER = "p4lang/p4c:latest"
_MAIN = "v1model/trainyard.p4"


@dataclass(frozen=True)
class Output:
    """Output of the compiler: BMv2 JSON, P4Info text and the compiler's version."""

    program: str
    p4info: str
    version: str


def source_hashes(target: str) -> dict[str, str]:
    """Return the SHA-256 of every P4 source of a target, ``v1model`` or ``tna``, by its path below ``p4src``."""
    return {
        path.relative_to(SOURCES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in ("shared", target)
        for path in sorted((SOURCES / folder).glob("*.p4"))
    }


def compile_sources(command: list[str]) -> Output:
    """Run the compiler. Raises CalledProcessError for errors in the sources, which are on stderr.

    File names in the JSON depend on the compiler's working folder, so it runs in ``p4src``.
    """
    told = subprocess.run([*command, "--version"], check=True, text=True, capture_output=True)  # nosec B603 # no shell
    found = re.search(r"Version (\S+)", told.stdout + told.stderr)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        made = Path(folder).relative_to(SOURCES)
        subprocess.run(  # nosec B603 # no shell
            [
                *command,
                *("--arch", "v1model"),
                *("--p4runtime-files", f"{made}/p4info.txtpb", "-o", f"{made}/program.json", _MAIN),
            ],
            check=True,
            cwd=SOURCES,
        )
        program = json.loads((Path(folder) / "program.json").read_text())
        p4info = (Path(folder) / "p4info.txtpb").read_text()
    return Output(json.dumps(program, indent=1) + "\n", p4info, found.group(1) if found else "unknown")


def compiler_command() -> list[str]:
    """Return the command that runs p4c. Raises FileNotFoundError if neither p4c nor Docker is installed."""
    if shutil.which(_COMPILER):
        return [_COMPILER]
    if shutil.which("docker"):
        mount = f"{SOURCES}:/p4src"
        return ["docker", "run", "--rm", "--volume", mount, "--workdir", "/p4src", _CONTAINER, _COMPILER]
    raise FileNotFoundError(f"neither {_COMPILER} nor docker is on PATH")


def main() -> int:
    """Compile the sources and write JSON, P4Info and manifest."""
    try:
        output = compile_sources(compiler_command())
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    PROGRAM.write_text(output.program)
    P4INFO.write_text(output.p4info)
    MANIFEST.write_text(json.dumps({"p4c": output.version, "sources": source_hashes("v1model")}, indent=2) + "\n")
    print(f"compiled with p4c {output.version}: {PROGRAM.name}, {P4INFO.name}, {MANIFEST.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
