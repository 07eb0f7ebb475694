"""The example of real hosts runs as the docs show it: emulator, controller and TCP between two namespaces."""

import os
import shutil
import subprocess

import pytest

from tests.docs.pages import ROOT

SCRIPT = ROOT / "docs/examples/real-hosts.sh"
_PATIENCE_S = 600


def test_two_namespaces_talk_through_emulated_switches() -> None:
    if os.geteuid() != 0 or shutil.which("ethtool") is None:
        pytest.skip("needs root and ethtool: the example of real hosts is not tried")
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("no namespaces can be made: the example of real hosts is not tried")
    fetch = (
        "import urllib.request;"
        "print(urllib.request.urlopen('http://10.0.1.1:8000/two-jobs.yaml', timeout=60).read().decode(), end='')"
    )
    ended = subprocess.run(
        [SCRIPT, ROOT / ".venv/bin/python", "-c", fetch],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=True,
    )
    assert "h0 has fetched a page from h1 through the switches" in ended.stdout
    assert (ROOT / "docs/examples/two-jobs.yaml").read_text() in ended.stdout
