"""A copy of the files that this checkout tracks, since building writes beside them."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked_files() -> list[str]:
    """The files that git tracks or would add, which exist."""
    listing = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def copy_checkout(folder: Path) -> Path:
    """Copy them into a folder; returns it."""
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder
