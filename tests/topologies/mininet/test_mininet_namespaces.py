"""Hosts that Mininet makes for a run: what they have, and that they are gone with their owner."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.mininet_cli import private, require_mininet
from tests.patience import PATIENCE_S
from topologies.clos import StarSpecification
from topologies.mininet.mininet_namespaces import MininetNamespaces
from topologies.namespaces.host_network import NetworkError

_HERE = Path(__file__).parent
FABRIC = StarSpecification(kind="star", hosts=2, host_link_gbps=0.1).build()


def _printed(script: str) -> list[str]:
    """What a script beside this file prints, in private namespaces: it loads Mininet, and this process does not."""
    require_mininet()
    ended = subprocess.run(
        private(sys.executable, str(_HERE / script)),
        cwd=ROOT,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_hosts_are_those_of_the_fabric() -> None:
    [said] = _printed("owner.py")
    assert json.loads(said) == {
        "name": ["10.0.1.1", "h1"],
        "route": ["10.0.1.1", "via", "169.254.1.1", "dev", "h0-eth0"],
        "is_up": True,
        "mtu_bytes": 9000,
        "has_sent": True,
        "interface": "h0-eth0",
        "wires": ["t0-eth1", "t1-eth1"],
        "outside": True,
    }


def test_all_ends_with_an_owner_that_is_killed() -> None:
    assert _printed("killed_owner.py") == ["both run", "left: []"]


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NetworkError, match="Mininet needs root"):
        MininetNamespaces(FABRIC).__enter__()


def test_without_mininet_it_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NetworkError, match="apt-get install mininet"):
        MininetNamespaces(FABRIC).__enter__()
