"""docs/compression.md: the example runs as the page shows it, and sends less where the link has less."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, code_lines
from tests.patience import PATIENCE_S

_PAGE = ROOT / "docs" / "compression.md"
_SHOWN = [line for line in code_lines(_PAGE) if "docs/examples/compressed_ddp.py" in line]


def _printed(line: str) -> str:
    """Return what a command line of the page prints, with this Python's programs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "GLOO_SOCKET_IFNAME": "lo"}
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_example_runs_as_shown_and_sends_less_on_a_slow_link() -> None:
    """At 2 Mbit/s even int8 would take 6 s, of which the backward pass, which sleeps, has an eighth of one."""
    ratios = {}
    for line in _SHOWN:
        printed = re.fullmatch(r"ratio (\S+)\. [A-Z].* MB are sent, ratio .*\n", _printed(line))
        assert printed, line
        ratios[line.split()[0]] = float(printed[1])
    assert set(ratios) == {"torchrun", "LINK_MBPS=2"}
    assert ratios["LINK_MBPS=2"] < 0.5
