"""Interpreters with a third party's package that cannot live beside ours, each installed once on a machine."""

import os
import shutil
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest


def interpreter_with(package: str, version: str, module: str, *others: str) -> Path:
    """Return an interpreter that has a version of a package and can import its module; skip the test without one.

    ``others`` are requirements that are installed with it.
    """
    cache = Path(os.environ.get("TRAINYARD_CACHE", Path.home() / ".cache" / "trainyard"))
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{package}-{version}"
    python, complete = folder / "bin" / "python", folder / "complete"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        # Tests may run in several processes.
        flock(lock, LOCK_EX)
        if not (python.exists() and complete.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            install = (python, "-m", "pip", "install", "--quiet", f"{package}=={version}", *others)
            for command in ((sys.executable, "-m", "venv", folder), install, (python, "-c", f"import {module}")):
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    last = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
                    pytest.skip(f"{package} {version} cannot be installed: {' '.join(last)}")
            complete.touch()
    return python


def packages_of(python: Path) -> str:
    """Return the folder in which an interpreter of a virtual environment has its packages, for PYTHONPATH."""
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
