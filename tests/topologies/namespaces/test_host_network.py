"""A host's NICs are set up so that TCP works well through emulated switches."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from topologies.namespaces import host_network
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import (
    GATEWAY,
    GATEWAY_MAC,
    NUM_LEVELS,
    NetworkError,
    class_of_level,
    run,
    set_offloads_off,
    socket_priority,
)

_OFFLOADS_THAT_ARE_ON = """
import ctypes, fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    for question in (0x14, 0x16, 0x18, 0x1E, 0x23, 0x2B):
        value = ctypes.create_string_buffer(struct.pack("II", question, 7))
        fcntl.ioctl(control, 0x8946, struct.pack("16sP16x", b"eth1", ctypes.addressof(value)))
        if struct.unpack("II", value.raw[:8])[1]:
            print(hex(question))
"""
_SEND = """
import socket, sys
address, option, number, count, size = sys.argv[1], *map(int, sys.argv[2:])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
    sending.bind((address, 0))
    sending.setsockopt(socket.IPPROTO_IP if option == socket.IP_TOS else socket.SOL_SOCKET, option, number)
    for _ in range(count):
        sending.sendto(bytes(size), ("10.0.1.1", 9))
"""
_IP_TOS, _SO_PRIORITY = 1, 12


def _said(namespaces: FabricNamespaces, host: str, *command: str) -> str:
    line = namespaces.command(host, *command)
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def _json(namespaces: FabricNamespaces, *command: str) -> Any:
    return json.loads(_said(namespaces, "h0", command[0], "-j", *command[1:]) or "[]")


def _packets(namespaces: FabricNamespaces, interface: str) -> dict[int, int]:
    """Packets that have left by each level's class."""
    said = _said(namespaces, "h0", "tc", "-s", "class", "show", "dev", interface).split("class htb ")[1:]
    sent = {row.split()[0]: int(row.split("bytes ")[1].split()[0]) for row in said}
    return {level: sent[f"1:{class_of_level(level):x}"] for level in range(NUM_LEVELS)}


def test_interfaces_are_the_fabrics_nics(namespaces: FabricNamespaces) -> None:
    for number in (0, 1):
        (interface,) = _json(namespaces, "ip", "address", "show", "dev", f"eth{number}")
        assert interface["address"] == f"02:00:00:00:00:{number + 1:02x}"
        assert interface["mtu"] == 4000
        assert "LOWER_UP" in interface["flags"]
        assert [(found["local"], found["prefixlen"]) for found in interface["addr_info"]] == [
            (f"10.0.0.{number + 1}", 32)
        ]


def test_packets_leave_by_the_nic_whose_address_they_have(namespaces: FabricNamespaces) -> None:
    for source, interface in (("10.0.0.1", "eth0"), ("10.0.0.2", "eth1")):
        (route,) = _json(namespaces, "ip", "route", "get", "10.0.1.2", "from", source)
        assert (route["gateway"], route["dev"]) == (GATEWAY, interface)
    (route,) = _json(namespaces, "ip", "route", "get", "10.0.1.2")
    assert (route["dev"], route["prefsrc"]) == ("eth0", "10.0.0.1")


def test_one_permanent_neighbour_is_the_fabric(namespaces: FabricNamespaces) -> None:
    found = _json(namespaces, "ip", "neighbour", "show")
    expected = {(GATEWAY, interface, GATEWAY_MAC, "PERMANENT") for interface in ("eth0", "eth1")}
    assert {(each["dst"], each["dev"], each["lladdr"], *each["state"]) for each in found} == expected


def test_tcp_comes_back_soon_after_starving(namespaces: FabricNamespaces) -> None:
    for table in ("main", "100", "101"):
        said = _said(namespaces, "h0", "ip", "route", "show", "table", table)
        assert "rto_min lock 10ms" in said
        assert "congctl cubic" in said
    settings = [f"/proc/sys/net/ipv4/{name}" for name in ("tcp_slow_start_after_idle", "tcp_no_metrics_save")]
    assert _said(namespaces, "h0", "cat", *settings).split() == ["0", "1"]


def test_interfaces_leave_nothing_to_hardware(namespaces: FabricNamespaces) -> None:
    assert _said(namespaces, "h0", sys.executable, "-c", _OFFLOADS_THAT_ARE_ON) == ""


def test_nothing_but_programs_speaks(namespaces: FabricNamespaces) -> None:
    for host in ("h0", "h1"):
        assert _said(namespaces, host, "ip", "-6", "address") == ""
        assert _said(namespaces, host, "cat", "/proc/sys/net/ipv4/ip_forward") == "0\n"


def test_htb_holds_the_host_to_its_links_rate(namespaces: FabricNamespaces) -> None:
    said = _said(namespaces, "h0", "tc", "class", "show", "dev", "eth1")
    rows = {row.split()[2]: row for row in said.splitlines()}
    assert set(rows) == {"1:1", *(f"1:{class_of_level(level):x}" for level in range(NUM_LEVELS))}
    for level in range(NUM_LEVELS):
        row = rows[f"1:{class_of_level(level):x}"]
        assert f"prio {NUM_LEVELS - 1 - level} rate 100Kbit ceil 99Mbit" in row


@pytest.mark.parametrize("level", range(NUM_LEVELS))
def test_levels_have_queues(namespaces: FabricNamespaces, level: int) -> None:
    """By the DSCP that a packet has, or by the class that its socket asks for."""
    before = _packets(namespaces, "eth1")
    _said(namespaces, "h0", sys.executable, "-c", _SEND, "10.0.0.2", str(_IP_TOS), str(level << 5), "3", "10")
    asked = str(socket_priority(level))
    _said(namespaces, "h0", sys.executable, "-c", _SEND, "10.0.0.2", str(_SO_PRIORITY), asked, "2", "10")
    after = _packets(namespaces, "eth1")
    assert {each: after[each] - before[each] for each in after} == {
        each: 5 if each == level else 0 for each in range(NUM_LEVELS)
    }


def test_frames_are_counted_for_each_nic(namespaces: FabricNamespaces) -> None:
    before = namespaces.frame_bytes()
    _said(namespaces, "h0", sys.executable, "-c", _SEND, "10.0.0.2", str(_IP_TOS), "0", "7", "1000")
    sending = (
        "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('h1-eth0', 0));"
        "s.send(bytes(12) + b'\\x88\\xb5' + bytes(500))"
    )
    fabric = namespaces.outside("ip", "netns", "exec", namespaces.fabric_name, sys.executable, "-c", sending)
    subprocess.run(fabric, timeout=PATIENCE_S, check=True)
    after = namespaces.frame_bytes()
    counted = {nic: (after[nic][0] - before[nic][0], after[nic][1] - before[nic][1]) for nic in after}
    assert counted == {("h0", 0): (0, 0), ("h0", 1): (7 * 1042, 0), ("h1", 0): (0, 514), ("h1", 1): (0, 0)}


def test_the_file_runs_by_itself(namespaces: FabricNamespaces) -> None:
    nics = json.dumps([{"interface": "absent", "mac": "", "address": "", "rate_bps": 1, "mtu_bytes": 1}])
    line = namespaces.command("h1", sys.executable, "-I", "-S", host_network.__file__, nics)
    ended = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "absent: receive checksums cannot be turned off: No such device\n"


def test_what_fails_is_named() -> None:
    with pytest.raises(NetworkError, match="absent: receive checksums cannot be turned off: No such device"):
        set_offloads_off("absent")
    with pytest.raises(NetworkError, match=r"^no-such-command is not found: namespaces need iproute2$"):
        run("no-such-command")
    with pytest.raises(NetworkError, match=r"^sh -c echo no >&2; exit 3: no$"):
        run("sh", "-c", "echo no >&2; exit 3")
    with pytest.raises(NetworkError, match=r"^false: exit status 1$"):
        run("false")
