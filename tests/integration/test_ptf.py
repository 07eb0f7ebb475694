"""PTF's tests of the example router pass on the emulator, as docs/test-p4-programs.md has them.

PTF is no package of the project's environment: ``TRAINYARD_PTF`` names its program, or it is on PATH.
"""

import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
ROUTER = ROOT / "docs" / "examples" / "p4"
PTF = os.environ.get("TRAINYARD_PTF") or shutil.which("ptf")


@pytest.mark.skipif(PTF is None, reason="PTF is not installed: set TRAINYARD_PTF, or put it on PATH")
def test_the_routers_tests_pass(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}"
    command = [sys.executable, "-m", "trainyard", "emulator", "--ports", "8", "--packets", f"s1={address}"]
    entries = ["--entries", "s1=docs/examples/p4/router-entries.json", "--listen", f"127.0.0.1:{free_port()}"]
    with subprocess.Popen([*command, *entries], cwd=ROOT, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            until_s = time.monotonic() + PATIENCE_S
            while not (tmp_path / "s1.ipc").exists():
                assert time.monotonic() < until_s
                assert emulator.poll() is None
                select.select([emulator.stdout], [], [], 0.1)
            assert PTF is not None
            ended = subprocess.run(
                [PTF, "--platform", "nn", "--device-socket", f"0-{{0-7}}@{address}", "--test-dir", str(ROUTER / "ptf")],
                cwd=tmp_path,
                env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
        finally:
            emulator.terminate()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "router.Routed ... ok" in ended.stdout + ended.stderr
