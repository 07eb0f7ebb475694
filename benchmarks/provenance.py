"""Where a figure comes from: machine, versions, command."""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path


def provenance(packages: tuple[str, ...]) -> dict[str, object]:
    """What has to stand beside every measured figure."""
    return {
        "command": " ".join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
