"""docs/python-api.md: every block runs, in order, and so does the API in a notebook's event loop."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trainyard as ty
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "python-api.md"
TWO_JOBS = ROOT / "docs" / "examples" / "two-jobs.yaml"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_runs(tmp_path: Path) -> None:
    shutil.copy(TWO_JOBS, tmp_path)
    (tmp_path / "page.py").write_text("\n".join(_BLOCK.findall(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
    ran = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "jobs[0] language, hosts[1]: expected a host of the topology (h0, h1, h2, h3), got 'h9'" in ran.stdout
    assert "0 runs failed" in ran.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {
        "timeline.png",
        "utilisation.svg",
        "delays.png",
        "two-jobs.html",
        "two-jobs.json.gz",
    }


@pytest.mark.parametrize("on", [pytest.param("emulator", marks=pytest.mark.slow), "simulator"])
def test_a_run_beside_an_event_loop_is_the_same(on: str) -> None:
    async def in_a_notebook() -> ty.RunResult:
        return ty.run(TWO_JOBS, "crux", on=on, progress=False)

    assert asyncio.run(in_a_notebook()).to_dict() == ty.run(TWO_JOBS, "crux", on=on, progress=False).to_dict()
