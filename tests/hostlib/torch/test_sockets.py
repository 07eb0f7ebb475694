"""Connections of this process that other code owns: found, marked and measured, and never held open."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from hostlib.torch import sockets
from hostlib.torch.sockets import AdoptedSocket, ConnectionGoneError, Endpoints, connections
from tests.hostlib.torch.gloo_ranks import run_ranks
from tests.namespaces import namespaces
from tests.patience import PATIENCE_S

LOOPBACK = IPv4Address("127.0.0.1")
MAX_PACING_RATE = 47
SENT_BYTES = 1_000_000


@dataclass(frozen=True)
class Connection:
    """Both ends of a connection that a test owns. The near end connected, the far one accepted."""

    near: socket.socket
    far: socket.socket

    @property
    def endpoints(self) -> Endpoints:
        (address, port), (peer_address, peer_port) = self.near.getsockname(), self.near.getpeername()
        return Endpoints(IPv4Address(address), port, IPv4Address(peer_address), peer_port)

    def adopted(self) -> AdoptedSocket:
        found = AdoptedSocket.open(self.endpoints)
        assert found is not None
        return found


def connect(stack: ExitStack, family: socket.AddressFamily = socket.AF_INET) -> Connection:
    """Connect over IPv4; the socket that accepts is of the family."""
    with socket.create_server(("", 0), family=family, dualstack_ipv6=family == socket.AF_INET6) as listening:
        near = stack.enter_context(socket.create_connection(("127.0.0.1", listening.getsockname()[1])))
        far = stack.enter_context(listening.accept()[0])
    near.settimeout(PATIENCE_S)
    far.settimeout(PATIENCE_S)
    return Connection(near, far)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv4-mapped"])
def connection(stack: ExitStack, request: pytest.FixtureRequest) -> Connection:
    if request.param == socket.AF_INET6 and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6 sockets that take IPv4 as well")
    return connect(stack, request.param)


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def send(connection: Connection, size_bytes: int) -> None:
    sending = threading.Thread(target=connection.near.sendall, args=(bytes(size_bytes),))
    sending.start()
    left = size_bytes
    while left:
        left -= len(connection.far.recv(left))
    sending.join()


def test_both_ends_of_a_connection_to_oneself_are_found(connection: Connection) -> None:
    found = connections()
    assert connection.endpoints in found
    assert connection.endpoints.reversed in found
    assert str(connection.endpoints).startswith("127.0.0.1:")


def test_other_sockets_and_files_are_not_connections(stack: ExitStack, tmp_path: Path) -> None:
    before = connections()
    stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    datagrams.connect(("127.0.0.1", 9))
    stack.enter_context(socket.socket())
    for end in socket.socketpair():
        stack.enter_context(end)
    stack.enter_context((tmp_path / "file").open("w"))
    assert connections() == before


def test_connections_over_ipv6_are_left_out(stack: ExitStack) -> None:
    before = connections()
    try:
        listening = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
    except OSError:
        pytest.skip("this machine has no IPv6 on its loopback interface")
    stack.enter_context(socket.create_connection(listening.getsockname()[:2]))
    stack.enter_context(listening.accept()[0])
    assert connections() == before


def test_connections_that_end_are_no_longer_there(connection: Connection) -> None:
    endpoints = connection.endpoints
    connection.near.close()
    assert connection.far.recv(1) == b""
    assert connections().isdisjoint({endpoints, endpoints.reversed})
    assert AdoptedSocket.open(endpoints) is None


def test_several_are_adopted_in_one_pass(stack: ExitStack) -> None:
    wanted = [connect(stack).endpoints for _ in range(3)]
    missing = Endpoints(LOOPBACK, 1, LOOPBACK, 1)
    adopted = AdoptedSocket.open_all([*wanted, missing])
    assert {endpoints: found.endpoints for endpoints, found in adopted.items()} == dict(
        zip(wanted, wanted, strict=True)
    )


def test_levels_are_the_class_selectors_of_the_live_socket(connection: Connection) -> None:
    for endpoints, owner in (
        (connection.endpoints, connection.near),
        (connection.endpoints.reversed, connection.far),
    ):
        adopted = AdoptedSocket.open(endpoints)
        assert adopted is not None
        for level in range(8):
            adopted.set_level(level)
            assert adopted.level == level
            assert owner.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == level << 5
            if owner.family == socket.AF_INET6:
                assert owner.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == level << 5


@pytest.mark.parametrize("level", [-1, 8, 1.5, None])
def test_other_levels_are_refused_and_change_nothing(stack: ExitStack, level: object) -> None:
    connection = connect(stack)
    connection.adopted().set_level(2)
    with pytest.raises(ValueError, match=r"^level: "):
        connection.adopted().set_level(level)
    assert connection.adopted().level == 2


def test_bytes_count_all_payload_that_was_handed_to_tcp_and_nothing_else(connection: Connection) -> None:
    sending = connection.adopted()
    receiving = AdoptedSocket.open(connection.endpoints.reversed)
    assert receiving is not None
    assert (sending.sent_bytes(), receiving.sent_bytes()) == (0, 0)
    connection.near.setblocking(False)
    handed = 0
    try:
        while True:  # until both sockets are full
            handed += connection.near.send(bytes(100_000))
    except BlockingIOError:
        pass
    assert sending.sent_bytes() == handed
    read = 0
    while read < handed:
        read += len(connection.far.recv(1 << 20))
    assert (sending.sent_bytes(), receiving.received_bytes()) == (handed, handed)
    assert (sending.received_bytes(), receiving.sent_bytes()) == (0, 0)


@pytest.fixture
def lossy(stack: ExitStack) -> Connection:
    """A connection through a router whose queue is shorter than TCP's window."""
    made = stack.enter_context(namespaces("here", "router", "there"))
    made.cable(("here", "eth0"), ("router", "eth0"))
    made.cable(("router", "eth1"), ("there", "eth0"))
    for name, interface, address in (
        ("here", "eth0", "10.0.0.1"),
        ("router", "eth0", "10.0.0.2"),
        ("router", "eth1", "10.0.1.2"),
        ("there", "eth0", "10.0.1.1"),
    ):
        made.ip(name, "address", "add", f"{address}/24", "dev", interface)
    made.ip("here", "route", "add", "10.0.1.0/24", "via", "10.0.0.2")
    made.ip("there", "route", "add", "10.0.0.0/24", "via", "10.0.1.2")
    made.run("router", "sysctl", "-w", "net.ipv4.ip_forward=1")
    queue = ("tbf", "rate", "100mbit", "burst", "20kb", "limit", "40kb")
    made.run("router", "tc", "qdisc", "add", "dev", "eth1", "root", *queue)
    with made.entered("there"):
        listening = stack.enter_context(socket.create_server(("10.0.1.1", 0)))
    with made.entered("here"):
        near = stack.enter_context(socket.create_connection(listening.getsockname(), PATIENCE_S))
    far = stack.enter_context(listening.accept()[0])
    far.settimeout(PATIENCE_S)
    return Connection(near, far)


def test_bytes_that_are_sent_again_count_once(lossy: Connection) -> None:
    send(lossy, 4 * SENT_BYTES)
    sending, receiving = lossy.adopted(), AdoptedSocket.open(lossy.endpoints.reversed)
    assert receiving is not None
    assert sending.retransmissions() > 0
    assert (sending.sent_bytes(), receiving.received_bytes()) == (4 * SENT_BYTES, 4 * SENT_BYTES)


def test_traffic_gives_a_rate_and_a_round_trip_time(stack: ExitStack) -> None:
    connection = connect(stack)
    send(connection, SENT_BYTES)
    adopted = connection.adopted()
    assert adopted.delivery_rate_bps() > 0
    assert 0 < adopted.round_trip_s() < PATIENCE_S
    assert adopted.retransmissions() >= 0


def test_pacing_is_set_in_the_kernel_s_unit_and_lifted(connection: Connection) -> None:
    adopted = connection.adopted()

    def octets_per_s() -> int:
        return int.from_bytes(connection.near.getsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, 8), sys.byteorder)

    unlimited = octets_per_s()
    adopted.set_pacing_rate(100e9)
    assert octets_per_s() == 12_500_000_000
    adopted.set_pacing_rate(None)
    assert octets_per_s() == unlimited
    for rate_bps in (0, 7, -8, float("inf"), "fast"):
        with pytest.raises(ValueError, match=r"^rate_bps: "):
            adopted.set_pacing_rate(rate_bps)
    assert octets_per_s() == unlimited


def test_the_peer_sees_the_end_once_the_owner_closes(connection: Connection) -> None:
    adopted = connection.adopted()
    adopted.set_level(5)
    adopted.sent_bytes()
    connections()
    connection.near.close()
    assert connection.far.recv(1) == b""
    for use in (adopted.sent_bytes, lambda: adopted.set_level(1), lambda: adopted.level):
        with pytest.raises(ConnectionGoneError, match=r"^127\.0\.0\.1:\d+ to .*: the connection is gone$"):
            use()


def test_what_takes_over_the_descriptor_is_left_alone(stack: ExitStack, tmp_path: Path) -> None:
    other = connect(stack)
    first = connect(stack)
    adopted, descriptor = first.adopted(), first.near.fileno()
    os.dup2(other.near.fileno(), descriptor)
    with pytest.raises(ConnectionGoneError):
        adopted.set_level(7)
    assert other.near.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0
    with (tmp_path / "file").open("w") as file:
        os.dup2(file.fileno(), descriptor)
    with pytest.raises(ConnectionGoneError):
        adopted.set_level(7)


def test_closing_gives_the_connection_up_and_leaves_it_open(stack: ExitStack) -> None:
    connection = connect(stack)
    before = num_descriptors()
    with closing(connection.adopted()) as adopted:
        adopted.set_level(4)
        assert num_descriptors() == before
    with pytest.raises(ConnectionGoneError):
        adopted.sent_bytes()
    send(connection, 1)
    assert connection.adopted().level == 4


def test_sockets_stay_blocking_whatever_the_default_timeout(stack: ExitStack) -> None:
    connection = connect(stack)
    connection.near.setblocking(True)
    socket.setdefaulttimeout(PATIENCE_S)
    stack.callback(socket.setdefaulttimeout, None)
    connection.adopted().sent_bytes()
    assert os.get_blocking(connection.near.fileno())


def test_scans_bear_descriptors_that_come_and_go(stack: ExitStack, tmp_path: Path) -> None:
    steady = [connect(stack).endpoints for _ in range(3)]
    stop = threading.Event()
    rounds = scans = 0

    def churn() -> None:
        nonlocal rounds
        while not stop.is_set():
            with ExitStack() as briefly:
                briefly.enter_context((tmp_path / "file").open("w"))
                connection = connect(briefly)
                connection.near.sendall(b"data")
                assert connection.far.recv(4) == b"data"
                connection.near.close()
                assert connection.far.recv(1) == b""
            rounds += 1

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        while min(rounds, scans) < 300 and churning.is_alive():
            assert connections().issuperset(steady)
            scans += 1
    finally:
        stop.set()
        churning.join()
    assert rounds >= 300


FORKED = """
import os, socket
from ipaddress import IPv4Address
from hostlib.torch.sockets import AdoptedSocket, Endpoints, connections

with socket.create_server(("127.0.0.1", 0)) as listening:
    near = socket.create_connection(listening.getsockname())
    far, _ = listening.accept()
(here, port), (there, peer_port) = near.getsockname(), near.getpeername()
endpoints = Endpoints(IPv4Address(here), port, IPv4Address(there), peer_port)
adopted = AdoptedSocket.open(endpoints)
child = os.fork()
if child == 0:
    adopted.set_level(6)  # what the parent adopted
    os._exit(0 if connections() == {endpoints, endpoints.reversed} else 1)
assert os.waitpid(child, 0)[1] == 0
assert adopted.level == 6
near.sendall(b"data")
assert far.recv(4) == b"data"
near.close()
assert far.recv(1) == b""
"""


def test_a_forked_child_finds_the_connections_and_its_end_leaves_them() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_fields_that_an_older_kernel_lacks_are_none(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    adopted = connect(stack).adopted()
    monkeypatch.setattr(sockets, "_TCP_INFO_BYTES", 104)  # Linux 3.14
    assert (adopted.sent_bytes(), adopted.received_bytes(), adopted.delivery_rate_bps()) == (None, None, None)
    assert adopted.retransmissions() == 0
    assert adopted.round_trip_s() >= 0


def test_systems_without_proc_have_no_connections(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connect(stack)
    monkeypatch.setattr(sockets, "_DESCRIPTORS", "/proc/self/nothing")
    assert connections() == frozenset()
    assert AdoptedSocket.open(connection.endpoints) is None


@pytest.mark.slow
def test_gloo_s_connections_are_marked_measured_and_let_go(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `torch`, for a real connection of gloo")
    sender, receiver = run_ranks("adopted_connections", 2, tmp_path)
    size_bytes, headers_bytes = 4_000_000, 1024
    assert (sender["octets"], receiver["octets"]) == ([3 << 5], [4 << 5])
    for payload_and_headers in (sender["sent_bytes"], receiver["received_bytes"]):
        assert size_bytes <= payload_and_headers <= size_bytes + headers_bytes
    for headers in (sender["received_bytes"], receiver["sent_bytes"]):
        assert headers <= headers_bytes
    for rank in (sender, receiver):
        assert (rank["address"], rank["left"], rank["gone"]) == ("127.0.0.1", 0, True)
