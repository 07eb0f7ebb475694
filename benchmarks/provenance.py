"""The provenance of measured figures (machine, versions, command), and their output."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path


def provenance(packages: tuple[str, ...]) -> dict[str, object]:
    """Return the machine, the command and the versions, which every set of figures must have."""
    return {
        "command": " ".join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def print_figures(figures: Mapping[str, object], *, as_json: bool) -> None:
    """Print the figures as one JSON object, or one figure per line."""
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures))
    for name, figure in figures.items():
        print(f"{name:{width}} {figure}")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
