"""Compile the P4 program for Tofino with p4c: ``python -m p4src.compile_tofino``.

Uses ``p4c`` from PATH, which needs the Tofino back end and its assembler. Running Trainyard needs neither, because the
output is committed.
"""

import json
import lzma
import re
import shutil
import subprocess  # nosec B404 # runs the compiler, on our own sources
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from p4src import SOURCES, TNA_DEVICE_CONFIG, TNA_MANIFEST, TNA_P4INFO, TNA_RESOURCES
from p4src.compile import source_hashes
from p4src.device_config import device_config
from p4src.tofino_resources import resources_table

COMPILER = "p4c"
_MAIN = "tna/trainyard.p4"

_NO_DATE = b"Thu Jan  1 00:00:00 1970"
_NO_RUN = b"0" * 16
"""These stand for the time and the random name of a compilation, so that equal sources give equal output."""


@dataclass(frozen=True)
class TofinoOutput:
    """Output of the compiler.

    Attributes:
        p4info: P4Info, as text.
        binary: What the chip loads, ``tofino.bin``.
        context: Its description for the driver, ``context.json``.
        resources: What the program takes of the chip, in Markdown.
        version: The compiler's version.
    """

    p4info: str
    binary: bytes
    context: bytes
    resources: str
    version: str

    def files(self) -> Mapping[Path, bytes]:
        """Return what is committed."""
        manifest = {"p4c": self.version, "sources": source_hashes("tna")}
        return {
            TNA_P4INFO: self.p4info.encode(),
            TNA_DEVICE_CONFIG: lzma.compress(device_config(self.binary, self.context), preset=9),
            TNA_RESOURCES: self.resources.encode(),
            TNA_MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode(),
        }


def compile_sources() -> TofinoOutput:
    """Run the compiler. Raises CalledProcessError for errors in the sources, which are on stderr."""
    told = subprocess.run([COMPILER, "--version"], check=True, text=True, capture_output=True)  # nosec B603
    found = re.search(r"\d+(?:\.\d+)+", told.stdout + told.stderr)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        p4info = folder / "p4info.txtpb"
        # The driver's log of its steps goes nowhere; errors stay on stderr.
        subprocess.run(  # nosec B603 # no shell
            [
                *(COMPILER, "--target", "tofino", "--arch", "tna", "--std", "p4-16", "--verbose", "1"),
                *("--p4runtime-force-std-externs", "--p4runtime-files", p4info, "-o", folder / "out", _MAIN),
            ],
            check=True,
            cwd=SOURCES,
            stdout=subprocess.DEVNULL,
        )
        pipe = folder / "out" / "pipe"
        text = p4info.read_text()
        return TofinoOutput(
            text,
            _of_no_run((pipe / "tofino.bin").read_bytes()),
            _of_no_run((pipe / "context.json").read_bytes()),
            resources_table(pipe / "logs", _sizes(text)),
            found.group() if found else "unknown",
        )


def _of_no_run(output: bytes) -> bytes:
    """Return the binary (BSON) or its description (JSON) without what differs from one compilation to the next."""
    output = re.sub(rb'(?<="build_date": ")[^"]*', _NO_DATE, output)
    output = re.sub(rb'(?<="run_id": ")[0-9a-f]{16}(?=")', _NO_RUN, output)
    return re.sub(rb"(?<=\x02run_id\x00\x11\x00\x00\x00)[0-9a-f]{16}(?=\x00)", _NO_RUN, output)


def _sizes(p4info: str) -> dict[str, int]:
    """Return the sizes of tables, counters and meters by name, 0 where P4Info's text tells none."""
    sizes = {}
    for part in re.split(r"^}\n", p4info, flags=re.MULTILINE):
        name = re.search(r'^    name: "([^"]+)"', part, re.MULTILINE)
        size = re.search(r"^  size: (\d+)", part, re.MULTILINE)
        if name and not part.startswith("actions"):
            sizes[name.group(1)] = int(size.group(1)) if size else 0
    return sizes


def main() -> int:
    """Compile the sources and write what is committed."""
    if shutil.which(COMPILER) is None:
        print(f"{COMPILER} is not on PATH", file=sys.stderr)
        return 1
    try:
        output = compile_sources()
    except subprocess.CalledProcessError as error:
        return error.returncode
    except FileNotFoundError as error:
        print(f"{COMPILER} has not written {error.filename}: has it the Tofino back end?", file=sys.stderr)
        return 1
    for path, content in output.files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    print(f"compiled with p4c {output.version}: {', '.join(path.name for path in output.files())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
