"""The systemd units: systemd finds nothing wrong with them, and they give services little."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.checkout import ROOT

_UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
_MOST_EXPOSURE = {"trainyard-controller.service": 1.5, "trainyard-agent.service": 2.2}
"""As `systemd-analyze security` counts: 0 is a service that can do nothing, 10 one without any limits."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="not tried: systemd-analyze is not installed"),
]


def analyze(*words: str | Path) -> tuple[int, str]:
    ran = subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_every_unit_has_a_limit_of_exposure() -> None:
    assert {unit.name for unit in _UNITS} == set(_MOST_EXPOSURE)


@pytest.mark.parametrize("unit", _UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    # The command is there once the package is installed.
    shown = tmp_path / unit.name
    shown.write_text(unit.read_text().replace("/usr/bin/trainyard", shutil.which("true") or "/bin/true"))
    assert analyze("verify", "--man=no", shown) == (0, "")


def test_what_systemd_does_not_know_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.service"
    wrong.write_text(f"[Service]\nExecStart={shutil.which('true')}\nWatchdogSecs=30\n")
    assert "'WatchdogSecs'" in analyze("verify", "--man=no", wrong)[1]


@pytest.mark.parametrize("unit", _UNITS, ids=lambda unit: unit.name)
def test_a_service_can_do_little_beside_its_work(unit: Path) -> None:
    threshold = f"--threshold={round(10 * _MOST_EXPOSURE[unit.name])}"
    status, said = analyze("security", "--no-pager", "--offline=true", threshold, unit)
    assert status == 0, said
