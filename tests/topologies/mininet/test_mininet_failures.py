"""What Mininet says where something is missing or taken, and that nothing of it stays behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.mininet_cli import CUSTOM, TOPOLOGY, mininet, private, require_mininet
from tests.patience import PATIENCE_S


def _mn(*options: str, before: str = "", after: str = "", **environment: str) -> str:
    """What ``mn`` prints, with an empty command line, in private namespaces; and what processes are left after it."""
    require_mininet()
    # Processes end as soon as the kernel comes to them; a test that waits in vain is at fault.
    started = 'ps -eo stat=,args= | grep -v "^Z" | grep -q -e "[m]ininet:" -e "[-]m trainyard"'
    after += f"while {started}; do sleep 0.1; done; echo nothing is left"
    ended = subprocess.run(
        private("sh", "-c", f'{before} "$@"; {after}', "sh", "mn", "--custom", CUSTOM, *options),
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return ended.stdout


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        (("--topo", "trainyard,none.yaml"), {}, "NetworkError: none.yaml: cannot be read"),
        (
            ("--topo", f"trainyard,{TOPOLOGY}"),
            {"TRAINYARD_PYTHON": "/none"},
            "Trainyard's Python is not found at /none",
        ),
        (
            ("--topo", f"trainyard,{TOPOLOGY}", "--controller", "trainyard,policy=none"),
            {},
            "module:attribute, got 'none'",
        ),
    ],
    ids=["no file", "no interpreter", "no policy"],
)
def test_it_says_what_is_wrong(options: tuple[str, ...], environment: dict[str, str], message: str) -> None:
    printed = _mn(*options, **environment)
    assert message in printed
    assert printed.endswith("nothing is left\n")


def test_an_error_leaves_processes_and_files_of_others_alone() -> None:
    # What Mininet's own cleaning up would end and delete: it kills whatever is called ``controller``.
    decoys = "cp /bin/sleep /tmp/controller; /tmp/controller 600 & touch /tmp/others.log;"
    seen = "pgrep -x controller >/dev/null && ls /tmp/others.log;"
    printed = _mn("--topo", "trainyard,none.yaml", before=decoys, after=seen)
    assert "Caught exception. Cleaning up" in printed
    assert printed.endswith("/tmp/others.log\nnothing is left\n")


def test_a_taken_port_is_named() -> None:
    listen = "import socket, time; taken = socket.create_server(('127.0.0.1', 4790)); time.sleep(600)"
    wait = "until grep -q :12B6 /proc/net/tcp; do sleep 0.1; done"
    printed = _mn("--topo", f"trainyard,{TOPOLOGY}", before=f'/usr/bin/python3 -c "{listen}" & {wait};')
    assert "running on port 4790" in printed
    assert "nothing is left" in printed


def test_names_that_nodes_of_mininet_cannot_have_are_refused(tmp_path: Path) -> None:
    file = ROOT / "out" / f"{tmp_path.name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        "topology: {kind: graph, hosts: [a+name, h1], switches: [s],"
        " links: [{ends: [a+name, s], gbps: 0.1}, {ends: [h1, s], gbps: 0.1}]}\n"
    )
    try:
        printed = _mn("--topo", f"trainyard,{file}")
    finally:
        file.unlink()
    assert "'a+name' cannot be a node of Mininet" in printed


def test_an_interface_that_vanishes_is_a_cable_that_is_down() -> None:
    with mininet() as cli:
        cli.type("h2 ip link delete h2-eth0")
        assert "t1-eth1: " in cli.type("link h2 t1 down")
        by = time.monotonic() + PATIENCE_S
        while "h2.0>t1" not in cli.type("sh .venv/bin/trainyard show links"):
            assert time.monotonic() < by
        assert "0% dropped" in cli.type("pingpair")
        assert "Done" in cli.leave()


def test_all_ends_with_mininet_that_is_killed() -> None:
    require_mininet()
    ended = subprocess.run(
        private(sys.executable, "-m", "tests.topologies.mininet.killed_mininet"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("left: []\n", "")
