"""The working directory, which may hold anything, hides no module of a run's controller."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


@pytest.mark.parametrize("stray", ["yaml", "policies", "controller"])
def test_a_run_on_the_emulator_imports_nothing_from_the_working_directory(tmp_path: Path, stray: str) -> None:
    (tmp_path / f"{stray}.py").write_text("import pathlib; pathlib.Path('imported').touch(); raise SystemExit('stray')")
    command = [
        str(Path(sys.executable).with_name("trainyard")),
        "run",
        str(ROOT / "docs/examples/two-jobs.yaml"),
        "--json",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "imported").exists()
