"""A private Open vSwitch runs apart from others, and ends with the process that has started it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.openvswitch import add_dummy_bridge, running_openvswitch, skip_without_openvswitch
from tests.topologies.namespaces.owners import Marks, wait_until
from topologies.namespaces.host_network import NetworkError
from topologies.openvswitch.daemons import OpenVSwitch

_OWNER = (
    "import sys; from topologies.openvswitch.daemons import OpenVSwitch\n"
    "with OpenVSwitch() as switch:\n"
    "    print(switch.folder, flush=True)\n"
    "    sys.stdin.read()\n"
)


def test_two_stand_side_by_side() -> None:
    with running_openvswitch() as first, running_openvswitch() as second:
        add_dummy_bridge(first, "t0", 5, [3, 7])
        add_dummy_bridge(second, "t1", 6, [1])
        assert first.vsctl("list-br").split() == ["t0"]
        assert second.vsctl("list-br").split() == ["t1"]
        shown = first.ofctl("show", "t0")
        assert "dpid:0000000000000005" in shown
        assert " 3(t0-3)" in shown
        assert " 7(t0-7)" in shown
        assert first.runs
    assert not first.runs


def test_nothing_stays_of_one_that_is_closed() -> None:
    switch = OpenVSwitch()
    for _ in range(2):
        skip_without_openvswitch()
        with switch:
            folder, processes = switch.folder, switch.process_ids
            assert switch.database_socket.is_socket()
            with pytest.raises(NetworkError, match="runs already"):
                switch.__enter__()
        assert not folder.exists()
        assert not any(Path(f"/proc/{process}").exists() for process in processes)
    switch.close()


def test_daemons_end_with_a_killed_owner() -> None:
    skip_without_openvswitch()
    marks = Marks()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        env=marks.environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert len([line for line in marks.processes().values() if "--unixctl" in line]) == 2
    finally:
        owner.kill()
        owner.communicate()
    wait_until(lambda: not marks.processes())
    with running_openvswitch():
        assert not folder.exists()


def test_the_folder_of_a_live_owner_in_another_namespace_of_processes_stays() -> None:
    skip_without_openvswitch()
    apart = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces of processes are not permitted here, and not tried")
    owner = subprocess.Popen(
        [*apart, sys.executable, "-c", _OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        with running_openvswitch():
            assert (folder / "switch.sock").is_socket()
    finally:
        owner.communicate()
    assert not folder.exists()


def test_a_switch_daemon_that_is_started_again_has_its_bridges_and_no_flows() -> None:
    with running_openvswitch() as switch:
        add_dummy_bridge(switch, "t0", 1, [1])
        switch.ofctl("add-flow", "t0", "ip,actions=drop")
        switch.restart_switch()
        switch.vsctl("set", "bridge", "t0", "external-ids:seen=yes")
        assert "cookie" not in switch.ofctl("dump-flows", "t0")
        assert " 1(t0-1)" in switch.ofctl("show", "t0")


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("topologies.openvswitch.daemons._SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NetworkError, match=r"^ovsdb-server, .* not found: apt-get install openvswitch-switch$"):
        OpenVSwitch().__enter__()


def test_a_daemon_that_does_not_start_says_why() -> None:
    skip_without_openvswitch()
    refusing = OpenVSwitch(["sh", "-c", "exit 3", "--"])
    with pytest.raises(NetworkError, match="ovsdb-server does not start: exit status 3"):
        refusing.__enter__()
    assert refusing.folder == Path()


def test_a_command_that_is_refused_is_named() -> None:
    with running_openvswitch() as switch:
        with pytest.raises(NetworkError, match="no bridge named t9"):
            switch.vsctl("list-ports", "t9")
        with pytest.raises(NetworkError, match="t9 is not a bridge or a socket"):
            switch.ofctl("dump-flows", "t9")
