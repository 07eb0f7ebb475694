"""Namespaces are made whole or not at all, and are removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S
from tests.topologies.namespaces.owners import Marks, small_fabric, wait_until
from topologies.fabric import Cable, Fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError, core_mask, run
from topologies.namespaces.ownership import NAMESPACES, remove

_ENTER = (
    "from tests.topologies.namespaces.owners import *\n"
    "from topologies.namespaces.host_network import NetworkError\n"
    "try:\n"
    "    with FabricNamespaces(small_fabric()): print('made')\n"
    "except NetworkError as error: print(error)\n"
)


def _fabric(*hosts: str, rate_bps: float = 1e8) -> Fabric:
    return Fabric(hosts, ("switch",), tuple(Cable((host, "switch"), rate_bps, 0.0) for host in hosts), 1)


def _said(namespaces: FabricNamespaces, host: str, *command: str) -> str:
    line = namespaces.command(host, *command)
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout


def _are_gone(namespaces: FabricNamespaces) -> bool:
    return not any((NAMESPACES / name).exists() for name in (*namespaces.names.values(), namespaces.fabric_name))


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_names_of_hosts_resolve_and_others_fail_at_once(namespaces: FabricNamespaces) -> None:
    assert _said(namespaces, "h0", "getent", "ahostsv4", "h1").split()[0] == "10.0.1.1"
    assert _said(namespaces, "h1", "getent", "ahostsv4", "localhost").split()[0] == "127.0.0.1"
    assert _said(namespaces, "h0", "cat", "/etc/resolv.conf").startswith("nameserver 127.0.0.1\n")
    assert _said(namespaces, "h0", "getent", "hosts", "unknown.example") == ""
    assert "10.0.1.1 h1" not in Path("/etc/hosts").read_text()


def test_hosts_see_their_own_interfaces_and_processes(namespaces: FabricNamespaces) -> None:
    assert _said(namespaces, "h0", "ls", "/sys/class/net").split() == ["eth0", "eth1", "lo"]
    assert [namespaces.interface("h0", nic) for nic in (0, 1)] == ["eth0", "eth1"]
    assert _said(namespaces, "h0", "sh", "-c", "echo $$") == "2\n"


@pytest.mark.usefixtures("permitted")
def test_hosts_take_what_arrives_on_the_core_that_is_asked_for() -> None:
    if not Path("/proc/sys/net/core/rps_default_mask").exists():
        pytest.skip("needs Linux 6.3: no core can be asked for")
    core = max(os.sched_getaffinity(0))
    with FabricNamespaces(small_fabric(), receiving_core=core) as namespaces:
        seen = _said(namespaces, "h0", "cat", "/sys/class/net/eth1/queues/rx-0/rps_cpus")
    assert int(seen.replace(",", ""), 16) == 1 << core


@pytest.mark.parametrize(
    ("core", "mask"), [(0, "00000001"), (31, "80000000"), (32, "00000001,00000000"), (70, "00000040,00000000,00000000")]
)
def test_masks_of_cores_are_written_as_the_kernel_reads_them(core: int, mask: str) -> None:
    assert core_mask(core) == mask


@pytest.mark.usefixtures("permitted")
def test_hosts_may_have_any_names() -> None:
    with FabricNamespaces(_fabric("plain", "rack 1", "a/b", "x#y", ".1", "-x")) as namespaces:
        for host in namespaces.fabric.hosts:
            address = _said(namespaces, host, "ip", "-br", "address", "show", "dev", "eth0")
            assert f"10.0.{namespaces.fabric.host_index[host]}.1/32" in address
        lines = _said(namespaces, "plain", "cat", "/etc/hosts").splitlines()
        assert lines == ["127.0.0.1 localhost", "10.0.0.1 plain", "10.0.2.1 a/b", "10.0.4.1 .1", "10.0.5.1 -x"]
    assert _are_gone(namespaces)


@pytest.mark.usefixtures("permitted")
def test_two_fabrics_stand_side_by_side() -> None:
    with FabricNamespaces(small_fabric()) as first:
        with FabricNamespaces(small_fabric()) as second:
            assert _said(first, "h0", "echo", "first") == "first\n"
            assert _said(second, "h0", "echo", "second") == "second\n"
        assert _are_gone(second)
        assert _said(first, "h0", "echo", "first") == "first\n"
    assert _are_gone(first)


@pytest.mark.usefixtures("permitted")
def test_namespaces_are_entered_once_at_a_time_and_closed_often() -> None:
    namespaces = FabricNamespaces(small_fabric())
    namespaces.close()
    before = _open_files()
    for _ in range(2):
        with namespaces:
            with pytest.raises(NetworkError, match="these namespaces are there already"):
                namespaces.__enter__()
            assert _said(namespaces, "h1", "echo", "here") == "here\n"
        namespaces.close()
        assert _are_gone(namespaces)
        assert _open_files() == before


def test_a_name_that_is_taken_stays_and_is_named() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: no name can be taken")
    namespaces = FabricNamespaces(small_fabric())
    before, taken = _open_files(), namespaces.names["h1"]
    run("ip", "netns", "add", taken)
    try:
        with pytest.raises(NetworkError, match=f"ip netns add {taken}: .*File exists"):
            namespaces.__enter__()
        assert (NAMESPACES / taken).exists()
        assert not (NAMESPACES / namespaces.fabric_name).exists()
        assert _open_files() == before
    finally:
        remove([taken])


@pytest.mark.usefixtures("permitted")
def test_a_rate_that_htb_refuses_leaves_nothing_behind() -> None:
    namespaces, before = FabricNamespaces(_fabric("h0", "h1", rate_bps=1)), _open_files()
    with pytest.raises(NetworkError, match=f"^{namespaces.names['h0']}: tc -batch -: "):
        namespaces.__enter__()
    assert _are_gone(namespaces)
    assert _open_files() == before


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NetworkError, match=r"^ip is not found on PATH: namespaces need iproute2$"):
        FabricNamespaces(small_fabric()).__enter__()
    (tmp_path / "ip").touch(mode=0o755)
    with pytest.raises(NetworkError, match=r"^tc is not found on PATH: namespaces need iproute2$"):
        FabricNamespaces(small_fabric()).__enter__()


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        # A user whom the namespace does not know may make none of its own.
        (("unshare", "--user"), "making namespaces for users, mounts and networks: Operation not permitted"),
        # Root without capabilities.
        (("setpriv", "--bounding-set=-sys_admin"), "ip netns add "),
    ],
)
def test_a_lack_of_permission_is_named(start: tuple[str, ...], complaint: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give rights up")
    marks = Marks()
    command = [*start, sys.executable, "-c", _ENTER]
    tried = subprocess.run(
        command, env=marks.environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert tried.stdout.startswith(complaint), tried.stderr
    assert not marks.processes()


@pytest.mark.usefixtures("permitted")
def test_a_keeper_that_was_killed_is_missed() -> None:
    namespaces = FabricNamespaces(small_fabric())
    with namespaces:
        (keeper,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()[-1:]
        os.kill(int(keeper), 9)
        wait_until(lambda: Path(f"/proc/{keeper}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        with pytest.raises(NetworkError, match="the keeper of the interfaces has ended"):
            namespaces.frame_bytes()
    assert _are_gone(namespaces)


@pytest.mark.usefixtures("permitted")
def test_closing_waits_for_no_child_that_was_forked() -> None:
    program = (
        "import os, time; from tests.topologies.namespaces.owners import *\n"
        "with FabricNamespaces(small_fabric()) as namespaces:\n"
        "    child = os.fork()\n"
        "    if child == 0: time.sleep(1000)\n"
        "os.kill(child, 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)
