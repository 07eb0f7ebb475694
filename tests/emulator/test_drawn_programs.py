"""Programs drawn at random do what the plain interpreter does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.differences import differences

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_many_drawn_programs_do_as_the_interpreter() -> None:
    """What the compiler generates is Python, and runs as such without compilation."""
    command = [sys.executable, "-m", "tests.emulator.differences", "0", "300"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *_, summary = done.stdout.splitlines()
    assert summary.startswith("0 differ")
    # The rest is compared: checksums in wide fields alone are refused.
    assert int(summary.split()[2]) < 45


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 164, 1278])
def test_machine_code_of_drawn_programs_does_as_the_interpreter(seed: int) -> None:
    assert differences(seed, is_python=False) == []
