"""Probes between two namespaces: what the kernel sends, passes, filters and answers."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from hostlib.telemetry.interfaces import Interface, InterfaceError, find_interface
from hostlib.telemetry.probe_ingress_filter import ProbeIngressFilter
from hostlib.telemetry.probes import IPV4_BYTES, Mark, Probe, probe_packet
from hostlib.telemetry.sockets import ProbeSockets
from hostlib.types import FiveTuple
from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S

HERE, THERE = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
NUM_PROBES = 20
IPV4_PROTOCOL = 0x0800
QUIET_S = 0.2


@pytest.fixture
def cabled() -> Iterator[Namespaces]:
    """Two hosts with a cable, new for each test because kernels limit the rate of their answers."""
    with namespaces("here", "there") as made:
        made.cable(("here", "eth0"), ("there", "eth0"))
        made.ip("here", "address", "add", f"{HERE}/24", "dev", "eth0")
        made.ip("there", "address", "add", f"{THERE}/24", "dev", "eth0")
        yield made


@pytest.fixture
def sender(cabled: Namespaces) -> Iterator[ProbeSockets]:
    with cabled.entered("here"):
        sockets = ProbeSockets(Interface("eth0", HERE, 1e9))
    with closing(sockets):
        yield sockets


@pytest.fixture
def receiver(cabled: Namespaces) -> Iterator[ProbeSockets]:
    with cabled.entered("there"):
        sockets = ProbeSockets(Interface("eth0", THERE, 1e9))
    with closing(sockets):
        yield sockets


def probe(number: int, protocol: int = 17) -> Probe:
    return Probe(FiveTuple(HERE, THERE, protocol, 50_000 + number, 4791), number % 8, Mark(1, number, 0, number))


def received(sockets: ProbeSockets, at_least: int) -> list[bytes]:
    """Return what has arrived, once it is that many packets and no more follow."""
    packets: list[bytes] = []
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        packets += sockets.receive()
        if len(packets) >= at_least:
            time.sleep(QUIET_S)
            return [*packets, *sockets.receive()]
        time.sleep(0.005)
    raise AssertionError(f"{len(packets)} packets of {at_least} came")


def answers(cabled: Namespaces) -> tuple[int, int]:
    """Return the ICMP messages and TCP resets that the receiving host sent."""
    rows = cabled.run("there", "cat", "/proc/net/snmp").splitlines()
    table: dict[str, dict[str, int]] = {}
    for names, values in zip(rows[::2], rows[1::2], strict=True):
        kind, *keys = names.split()
        table[kind] = dict(zip(keys, map(int, values.split()[1:]), strict=True))
    return table["Icmp:"]["OutDestUnreachs"], table["Tcp:"]["OutRsts"]


def send_all(sender: ProbeSockets, receiver: ProbeSockets) -> list[bytes]:
    """Send UDP and TCP probes to a port without a listener; return what arrived."""
    probes = [probe(number, protocol) for number in range(NUM_PROBES) for protocol in (17, 6)]
    for one in probes:
        sender.send(one)
    assert (sender.sent, sender.unsent) == (len(probes), {})
    packets = received(receiver, len(probes))
    assert packets == [probe_packet(one) for one in probes]
    return packets


def test_probes_arrive_as_they_were_made(sender: ProbeSockets, receiver: ProbeSockets) -> None:
    packets = send_all(sender, receiver)
    assert (receiver.received, receiver.lost) == (len(packets), 0)


def test_swallowed_probes_are_seen_and_neither_answered_nor_given_to_sockets(
    cabled: Namespaces, sender: ProbeSockets, receiver: ProbeSockets
) -> None:
    with cabled.entered("there"):
        swallowing = ProbeIngressFilter("eth0", THERE)
    before = answers(cabled)
    with closing(swallowing):
        send_all(sender, receiver)
        assert answers(cabled) == before
        with cabled.entered("there"):
            job = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with closing(job):
            job.bind((str(THERE), 4791))
            sender.send(probe(0))
            assert received(receiver, 1) == [probe_packet(probe(0))]
            with pytest.raises(BlockingIOError):
                job.recv(2048)
            # What is no probe gets to it.
            with cabled.entered("here"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.sendto(b"data", (str(THERE), 4791))
            job.settimeout(PATIENCE_S)
            assert job.recv(2048) == b"data"
    # As it is without: ICMP up to the kernel's limit for a host, resets for all.
    sender.sent = 0
    send_all(sender, receiver)
    unreachable, resets = answers(cabled)
    assert before[0] < unreachable <= before[0] + NUM_PROBES
    assert resets == before[1] + NUM_PROBES


NOISE: dict[str, Callable[[bytearray], object]] = {
    "not announced": lambda packet: packet.__setitem__(1, packet[1] & ~4),
    "for another address": lambda packet: packet.__setitem__(slice(16, 20), IPv4Address("10.0.0.3").packed),
    "ICMP": lambda packet: packet.__setitem__(9, 1),
    "no mark": lambda packet: packet.__setitem__(slice(-24, -20), b"TYP0"),
    "mark that is not at the end": lambda packet: packet.extend(bytes(4)),
    "with options": lambda packet: (packet.__setitem__(0, 0x46), packet.__setitem__(slice(20, 20), bytes(4))),
    "headers alone": lambda packet: packet.__delitem__(slice(IPV4_BYTES, None)),
}


@pytest.mark.parametrize("noise", NOISE)
def test_nothing_else_is_let_through_or_swallowed(
    cabled: Namespaces, sender: ProbeSockets, receiver: ProbeSockets, noise: str
) -> None:
    if noise == "for another address":
        # The kernel would ask for it before sending.
        cabled.ip("there", "address", "add", "10.0.0.3/24", "dev", "eth0")
    packet = bytearray(probe_packet(probe(1)))
    NOISE[noise](packet)
    with cabled.entered("there"):
        swallowing = ProbeIngressFilter("eth0", THERE)
        # Sockets for one protocol see what the program at the ingress leaves.
        left = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.htons(IPV4_PROTOCOL))
    with closing(swallowing), closing(left):
        with cabled.entered("here"), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            raw.sendto(packet, (str(IPv4Address(bytes(packet[16:20]))), 0))
        sender.send(probe(2))
        assert received(receiver, 1) == [probe_packet(probe(2))]
        # Length and checksum are the kernel's.
        assert left.recv(2048)[12:] == packet[12:]
        with pytest.raises(BlockingIOError):
            left.recv(2048)


def test_what_the_kernel_does_not_take_is_counted(cabled: Namespaces, sender: ProbeSockets) -> None:
    cabled.ip("here", "link", "set", "eth0", "down")
    sender.send(probe(0))
    assert (sender.sent, sum(sender.unsent.values())) == (0, 1)
    cabled.ip("here", "link", "set", "eth0", "up")
    sender.send(probe(0))
    assert sender.sent == 1


def test_an_address_that_is_another_host_s_is_refused_by_name(cabled: Namespaces) -> None:
    with (
        cabled.entered("here"),
        pytest.raises(OSError, match=r"^eth0 with address 10\.0\.0\.2: Cannot assign requested address$"),
    ):
        ProbeSockets(Interface("eth0", THERE, 1e9))


def test_interfaces_are_found_as_the_system_knows_them(cabled: Namespaces) -> None:
    with cabled.entered("here"):
        assert find_interface("eth0@100") == Interface("eth0", HERE, 100e9)
        assert find_interface("eth0=10.1.0.1@0.5") == Interface("eth0", IPv4Address("10.1.0.1"), 5e8)
        with pytest.raises(InterfaceError, match=r"^eth7: there is no such interface; there are lo, eth0$"):
            find_interface("eth7")


@pytest.mark.parametrize(
    ("speed", "rate_bps"), [("25000\n", 25e9), ("-1\n", None), ("", None)], ids=["known", "no link", "unreadable"]
)
def test_rates_are_what_the_driver_says(
    cabled: Namespaces, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, speed: str, rate_bps: float | None
) -> None:
    (tmp_path / "eth0").mkdir()
    (tmp_path / "eth0" / "speed").write_text(speed)
    monkeypatch.setattr("hostlib.telemetry.interfaces._INTERFACES", tmp_path)
    with cabled.entered("here"):
        if rate_bps is not None:
            assert find_interface("eth0").rate_bps == rate_bps
        else:
            with pytest.raises(InterfaceError, match=r"^eth0: its rate is not known \(.*/eth0/speed\)"):
                find_interface("eth0")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("", "expected NAME"),
        ("lo@0", "lo: expected a rate"),
        ("lo@fast", "lo: expected a rate"),
        ("lo=10.0.0@1", "lo: not an IPv4 address"),
    ],
)
def test_what_names_no_interface_is_refused(asked: str, problem: str) -> None:
    with pytest.raises(InterfaceError, match=problem):
        find_interface(asked)
