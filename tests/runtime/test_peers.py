"""Two hosts of this process, connected by real sockets."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from queue import SimpleQueue
from secrets import token_hex
from threading import Thread
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostlib.torch.sockets import AdoptedSocket, Endpoints
from runtime import messages
from runtime.addresses import dialled, listening
from runtime.executor.copies import Copies
from runtime.executor.loop import Loop
from runtime.executor.peers import Peers
from runtime.frames import LOAN, PIECE, RETURN, Kind, prefix
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Send
from runtime.messages import Failure
from runtime.substrates.interface import HostSettings
from runtime.transport.arena import Arena
from runtime.transport.arrays import LEAST_BYTES, ArenaArrays
from runtime.transport.shared_memory import Segment
from tests.patience import PATIENCE_S

T = TypeVar("T")
SECRET = "of these hosts"
ROOM_BYTES = 64 * LEAST_BYTES
ITEMS = LEAST_BYTES // 8
SEND = Send(3, 1, Piece(5, 4, (), ()), True)


class KnownSockets(Loop):
    """A loop that can tell which sockets it watches."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: dict[int, socket.socket] = {}

    def watch(self, sock: socket.socket, readable: Callable[[], None], writable: Callable[[], None] | None) -> None:
        self.sockets[sock.fileno()] = sock
        super().watch(sock, readable, writable)

    def forget(self, sock: socket.socket) -> None:
        self.sockets.pop(sock.fileno(), None)
        super().forget(sock)


class Host:
    """A host with a loop in a thread of its own, which takes note of what it receives."""

    def __init__(self, number: int, address: str, room_bytes: int, local_address: str = "") -> None:
        self.received: SimpleQueue[tuple[tuple[int, int, int, int], Any]] = SimpleQueue()
        self.places: dict[tuple[int, int, int, int], memoryview] = {}
        self.arrays = ArenaArrays(Arena(room_bytes))
        self.loop = KnownSockets()
        self.others: dict[int, Host] = {}
        self.opened: SimpleQueue[messages.FlowOpened] = SimpleQueue()
        settings = HostSettings(number, 1, address, "", SECRET, local_address=local_address)
        self.peers = Peers(self.loop, settings, self.arrays, Copies(self.loop), self, self.tell)
        self.thread = Thread(target=self.loop.run)
        self.thread.start()

    def receive(self, number: int, edge: int, destination: int, source: int, data: Any) -> None:
        self.received.put(((number, edge, destination, source), data))

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int) -> memoryview | None:
        place = self.places.get((number, edge, destination, source))
        assert place is None or len(place) == size_bytes
        return place

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str) -> None:
        self.received.put(((number, edge, destination, source), cause))

    def tell(self, message: Any) -> None:
        """Pass a message on, as the server does, and keep what is for that."""
        if isinstance(message, messages.FlowOpened):
            self.opened.put(message)
            return
        other = self.others.get(message.host)
        if other is not None:
            is_end = isinstance(message, messages.ConnectionEnded)
            take = other.peers.take_end if is_end else other.peers.take_returned
            other.loop.post(lambda: take(message))

    def do(self, call: Callable[[], T]) -> T:
        """What a call returns in the loop's thread."""
        done: SimpleQueue[T] = SimpleQueue()
        self.loop.post(lambda: done.put(call()))
        return done.get(timeout=PATIENCE_S)

    def send(self, execution: int, array: np.ndarray[Any, Any]) -> None:
        self.do(lambda: self.peers.send_piece(1, execution, SEND, array))

    def next(self) -> tuple[tuple[int, int, int, int], Any]:
        return self.received.get(timeout=PATIENCE_S)

    def until_returned(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while self.do(lambda: self.peers.lent):
            assert time.monotonic() < deadline_s

    def end(self) -> None:
        self.loop.post(self.loop.stop)
        self.thread.join()
        self.loop._wake.close()
        for watched in self.loop.sockets.values():
            watched.close()
        self.loop._woken.close()


@contextmanager
def two_hosts(
    *addresses: str, room_bytes: int = ROOM_BYTES, local_addresses: Sequence[str] = ("", "")
) -> Iterator[tuple[Host, Host]]:
    hosts = [
        Host(number, address, room_bytes, local_address)
        for number, (address, local_address) in enumerate(zip(addresses, local_addresses, strict=True))
    ]
    known = {number: host.peers.place for number, host in enumerate(hosts)}
    for host in hosts:
        host.others = dict(enumerate(hosts))
        host.peers.take_places(known)
    try:
        yield hosts[0], hosts[1]
    finally:
        for host in hosts:
            host.end()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    folder = tmp_path_factory.mktemp("hosts")
    with two_hosts(f"unix:{folder}/0", f"unix:{folder}/1") as hosts:
        yield hosts


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[Host, Host]]:
    with two_hosts("127.0.0.1:0", "127.0.0.1:0") as hosts:
        yield hosts


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = draw(st.sampled_from(["bool", "int32", "float64", "complex128"]))
    size = draw(st.sampled_from([0, 1, ITEMS // 2, ITEMS - 1, ITEMS, ITEMS + 1, 3 * ITEMS]))
    made = np.random.default_rng(size).integers(0, 100, (size, 4)).astype(dtype)
    return draw(st.sampled_from([made, made.T, made[:, 1:], made[::2], made[1:]]))


@pytest.mark.parametrize("hosts", ["local", "remote"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(arrays(), min_size=1, max_size=4))
def test_pieces_arrive_as_they_were(
    hosts: str, request: pytest.FixtureRequest, sent: list[np.ndarray[Any, Any]]
) -> None:
    sender, receiver = request.getfixturevalue(hosts)
    for number, array in enumerate(sent):
        sender.send(number, array)
    received = dict(receiver.next() for _ in sent)
    for number, array in enumerate(sent):
        data = received.pop((number, 3, 4, 5))
        assert (np.frombuffer(data, array.dtype).reshape(array.shape) == array).all()
    del data
    sender.until_returned()
    assert sender.arrays.arena.used_bytes == 0


def test_what_lies_in_the_arena_is_read_where_it_lies_and_cannot_be_changed(local: tuple[Host, Host]) -> None:
    sender, receiver = local
    array = sender.arrays.empty((ITEMS,), "float64")
    array[:] = 1
    sender.send(0, array)
    read = np.frombuffer(receiver.next()[1])
    array[7] = 2
    assert read[7] == 2
    with pytest.raises(ValueError, match="read-only"):
        read[7] = 3
    assert sender.do(lambda: sender.peers.lent) == 1
    del array
    part = read[8:9]
    del read
    assert (part == 1).all()
    assert sender.do(lambda: sender.peers.lent) == 1
    assert sender.arrays.arena.used_bytes == LEAST_BYTES
    del part
    sender.until_returned()
    assert sender.arrays.arena.used_bytes == 0


def test_what_lies_elsewhere_is_copied_into_the_arena(local: tuple[Host, Host]) -> None:
    sender, receiver = local
    array = np.ones(ITEMS)
    sender.send(0, array)
    array[:] = 2
    data = receiver.next()[1]
    assert (np.frombuffer(data) == 1).all()
    assert sender.arrays.arena.used_bytes == LEAST_BYTES


def test_what_the_arena_has_no_room_for_is_sent(local: tuple[Host, Host]) -> None:
    sender, receiver = local
    sender.until_returned()
    full = sender.arrays.empty((ROOM_BYTES,), "uint8")
    assert sender.arrays.offset_bytes(full) == 0
    for number in range(20):
        sender.send(number, np.full(ITEMS, number))
    for number in range(20):
        assert (np.frombuffer(receiver.next()[1], np.int64) == number).all()
    assert sender.do(lambda: sender.peers.lent) == 0


def test_what_the_receiver_never_gives_back_stops_nobody(local: tuple[Host, Host]) -> None:
    sender, receiver = local
    kept = []
    for number in range(3 * ROOM_BYTES // LEAST_BYTES):
        sender.send(number, np.full(ITEMS, number))
        kept.append(receiver.next()[1])
    assert sender.do(lambda: sender.peers.lent) == ROOM_BYTES // LEAST_BYTES
    for number, data in enumerate(kept):
        assert (np.frombuffer(data, np.int64) == number).all()
    del data, kept
    sender.until_returned()
    assert sender.arrays.arena.used_bytes == 0


def test_a_large_piece_is_received_where_it_is_needed(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    whole = np.zeros((2, 4 * ITEMS))
    receiver.places[9, 3, 4, 5] = whole[1].data.cast("B")
    sender.send(9, np.arange(4.0 * ITEMS))
    data = receiver.next()[1]
    assert np.shares_memory(np.frombuffer(data), whole)
    assert (whole == (np.zeros(4 * ITEMS), np.arange(4 * ITEMS))).all()
    sender.send(10, np.arange(4.0 * ITEMS))
    elsewhere = np.frombuffer(receiver.next()[1])
    assert receiver.arrays.offset_bytes(elsewhere) is not None, "it has warm memory"
    assert (elsewhere == np.arange(4 * ITEMS)).all()


@pytest.mark.parametrize("hosts", ["local", "remote"])
def test_a_failure_arrives_in_place_of_a_piece(hosts: str, request: pytest.FixtureRequest) -> None:
    sender, receiver = request.getfixturevalue(hosts)
    failure = Failure("LostError", "it is lost")
    sender.do(lambda: sender.peers.send_failure(1, 2, SEND, failure))
    assert receiver.next() == ((2, 3, 4, 5), failure)


def test_a_host_that_goes_returns_what_it_was_lent(local: tuple[Host, Host], tmp_path: Path) -> None:
    sender = local[0]
    with listening(f"unix:{tmp_path}/2") as listener:
        sender.do(lambda: sender.peers.take_places({2: messages.Place(f"unix:{tmp_path}/2")}))
        sender.do(lambda: sender.peers.send_piece(2, 0, SEND, np.full(ITEMS, 7)))
        with listener.accept()[0] as other:
            received, (descriptor,), _, _ = socket.recv_fds(other, 4096, 1)
            segment = Segment.attach(descriptor)
            while len(received) < len(greeting(place=sender.peers.place)) + len(prefix(Kind.LENT_PIECE, LENT, 0)):
                received += other.recv(4096)
            number, offset_bytes, size_bytes = LOAN.unpack(received[-LOAN.size :])
            assert (number, size_bytes) == (0, LEAST_BYTES)
            assert (np.frombuffer(segment.part(offset_bytes, size_bytes), np.int64) == 7).all()
            assert sender.do(lambda: sender.peers.lent) == 1
    sender.do(lambda: sender.peers.send_piece(2, 1, SEND, np.full(ITEMS, 7)))  # nobody listens there any more
    sender.do(lambda: sender.peers.take_places({1: local[1].peers.place}))
    sender.do(lambda: sender.peers.send_piece(2, 2, SEND, np.full(ITEMS, 7)))
    sender.until_returned()
    assert sender.arrays.arena.used_bytes == 0


TCP = ("127.0.0.1:0", "127.0.0.1:0")


def test_hosts_that_find_that_they_share_a_machine_lend() -> None:
    names = [f"unix:@trainyard-test-{token_hex(4)}/{number}" for number in range(2)]
    with two_hosts(*TCP, local_addresses=names) as (sender, receiver):
        sender.send(0, np.full(ITEMS, 7))
        data = receiver.next()[1]
        assert sender.do(lambda: sender.peers.lent) == 1
        assert (np.frombuffer(data, int) == 7).all()


def test_hosts_of_other_machines_and_those_that_cannot_be_reached_there_are_sent_data() -> None:
    names = [f"unix:@trainyard-test-{token_hex(4)}/{number}" for number in range(2)]
    with two_hosts(*TCP, local_addresses=names) as (sender, receiver):
        place = receiver.peers.place
        for other in (replace(place, machine="another"), replace(place, local_address="unix:@nobody listens")):
            sender.do(lambda other=other: sender.peers.take_places({1: other}))  # type: ignore[misc]
            sender.send(0, np.full(ITEMS, 7))
            data = receiver.next()[1]
            assert sender.do(lambda: sender.peers.lent) == 0
            assert (np.frombuffer(data, int) == 7).all()
            sender.do(lambda: end_of(sender)("it was cut"))


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


NOWHERE = messages.Place()


def greeting(secret: str = SECRET, place: messages.Place = NOWHERE) -> bytes:
    return prefix(Kind.MESSAGE, messages.encode(messages.Hello(messages.VERSION, "executor", "2", secret, place)), 0)


LENT = PIECE.pack(0, 0, 0, 0) + LOAN.pack(0, 4096, 1)


def head(name: tuple[int, ...] = (0, 0, 0, 0), *, kind: int = Kind.PIECE, payload: bytes = b"") -> bytes:
    return prefix(kind, PIECE.pack(*name), len(payload)) + payload


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ((greeting("of others"),), ""),
        ((prefix(Kind.MESSAGE, b"no message", 0),), ""),
        ((head(),), ""),
        ((greeting(), prefix(Kind.GRANTS, b"", 0)), "expected a piece, got a frame of kind 3"),
        ((greeting(), prefix(99, b"", 0)), "expected a piece, got a frame of kind 99"),
        ((greeting(), prefix(Kind.PIECE, b"short", 0)), "expected a header of 20 bytes in a piece, got 5"),
        ((greeting(), prefix(Kind.LENT_PIECE, LENT, 0)), "segment: 1 bytes at 4096 are not inside its 4096"),
        ((greeting(), head(kind=Kind.FAILED_PIECE, payload=b"[")), "why a piece does not come: expected a message"),
        ((greeting(), prefix(Kind.PIECE, b"", (1 << 36) + 1)), f"a frame of {(1 << 36) + 1} bytes"),
    ],
    ids=["secret", "greeting", "piece", "kind", "no kind", "header", "place", "failure", "size"],
)
def test_what_no_host_may_send_ends_its_connection_and_is_named(
    local: tuple[Host, Host], frames: tuple[bytes, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What strangers send is not worth a word."""
    receiver = local[1]
    descriptors = num_descriptors()
    with dialled(receiver.peers.place.address) as stranger, _closed(Segment.create(4096)) as segment:
        stranger.settimeout(PATIENCE_S)
        socket.send_fds(stranger, (b"".join(frames),), (segment.descriptor,))
        assert stranger.recv(1) == b""
    receiver.do(lambda: None)
    assert num_descriptors() == descriptors
    assert receiver.received.empty()
    said = capsys.readouterr().err
    assert said.startswith("host 1, of host 2: refused a frame: " if says else "")
    assert says in said


def test_what_is_no_segment_is_not_mapped_and_loans_are_refused(local: tuple[Host, Host], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(4096))
    descriptors = num_descriptors()
    with dialled(local[1].peers.place.address) as other, (tmp_path / "file").open() as file:
        other.settimeout(PATIENCE_S)
        lent = prefix(Kind.LENT_PIECE, LENT, 0)
        socket.send_fds(other, (greeting() + lent,), (file.fileno(), file.fileno()))
        unreadable = prefix(Kind.UNREADABLE, RETURN.pack(0), 0)
        assert other.recv(4096) == unreadable
        other.sendall(prefix(Kind.GRANTS, b"", 0))
        assert other.recv(1) == b""
    local[1].do(lambda: None)
    assert num_descriptors() == descriptors
    assert local[1].received.empty()


def end_of(sender: Host) -> Callable[[str], None]:
    """Return what ends the connection of a host to host 1."""
    return sender.peers._outgoing[1, None].connection.close


def test_what_was_lost_is_named_and_what_came_is_not(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    for number in range(3):
        sender.send(number, np.full(3, number))
        receiver.next()

    def send_and_break() -> None:
        for number in range(3, 6):  # what the other side reads of these, before it hears of the end, is not lost
            sender.peers.send_piece(1, number, SEND, np.full(3, number))
        sender.peers.send_piece(1, 6, SEND, np.zeros(1 << 23))  # more than sockets take
        end_of(sender)("it was cut")

    sender.do(send_and_break)
    came = dict(receiver.next() for _ in range(4))
    assert sorted(name[0] for name in came) == [3, 4, 5, 6]
    cause = "the connection from host 0 to host 1 ended: it was cut"
    assert came[6, 3, 4, 5] == cause
    assert all(
        came[number, 3, 4, 5] == cause or (np.frombuffer(came[number, 3, 4, 5], int) == number).all()
        for number in range(3, 6)
    )
    sender.send(7, np.full(3, 7))
    assert receiver.next()[0] == (7, 3, 4, 5)
    assert receiver.received.empty()


def test_what_is_lent_outlives_the_connection(local: tuple[Host, Host]) -> None:
    sender, receiver = local
    sender.send(0, np.full(ITEMS, 7))
    data = receiver.next()[1]
    sender.do(lambda: end_of(sender)("it was cut"))
    sender.send(1, np.full(ITEMS, 8))
    other = receiver.next()[1]
    assert sender.do(lambda: sender.peers.lent) == 2
    assert (np.frombuffer(data, int) == 7).all()
    del data
    while sender.do(lambda: sender.peers.lent) == 2:
        receiver.do(lambda: None)
    assert (np.frombuffer(other, int) == 8).all()
    del other
    sender.until_returned()
    assert sender.arrays.arena.used_bytes == 0


def test_a_host_that_cannot_be_reached_gets_word_of_what_it_misses(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    sender.do(lambda: end_of(sender)("it was cut") if (1, None) in sender.peers._outgoing else None)
    known = dict(sender.peers.places)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        sender.do(lambda: sender.peers.take_places({1: messages.Place(f"127.0.0.1:{closed.getsockname()[1]}")}))
        sender.send(0, np.zeros(3))
        name, cause = receiver.next()
    assert name == (0, 3, 4, 5)
    assert cause == "the connection from host 0 to host 1 ended: Connection refused"
    sender.do(lambda: sender.peers.take_places(known))


def next_opened(sender: Host) -> tuple[int, Endpoints]:
    """The number of a flow that has got a connection, and the ends of that."""
    told = sender.opened.get(timeout=PATIENCE_S)
    ends = (IPv4Address(told.address), told.port, IPv4Address(told.peer_address), told.peer_port)
    return told.number, Endpoints(*ends)


def level_of(endpoints: Endpoints) -> int:
    found = AdoptedSocket.open(endpoints)
    assert found is not None
    return found.level


def test_a_flow_has_a_connection_of_its_own_which_sends_at_its_level(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    sender.do(lambda: sender.peers.open_flows([messages.FlowToOpen(number, 3, 1) for number in (7, 8)]))
    ends = dict(next_opened(sender) for _ in range(2))
    assert len({each.port for each in ends.values()}) == 2
    sender.do(lambda: sender.peers.send_piece(1, 20, SEND, np.full(3, 1), 7, 5.0))
    assert receiver.next()[0] == (20, 3, 4, 5)
    sender.do(lambda: sender.peers.rank_flows([messages.FlowRank(7, 6, None), messages.FlowRank(9, 5, None)]))
    assert [level_of(ends[number]) for number in (7, 8)] == [6, 0]
    sender.do(lambda: sender.peers.send_piece(1, 21, SEND, np.full(3, 1), 7, 5.0))
    receiver.next()
    sent = list(sender.peers.flows.sent)
    assert [(each.flow, each.name[0], each.size_bytes, each.level, each.made_s) for each in sent] == [
        (7, 20, 24, -1, 5.0),
        (7, 21, 24, 6, 5.0),
    ]
    assert sent[1].ranked_s <= sent[1].began_s
    assert [each.name[0] for each in receiver.peers.flows.arrived] == [20, 21]
    sender.do(lambda: sender.peers.close_flows([7, 8]))
    assert all(AdoptedSocket.open(each) is None for each in ends.values())
    sender.do(lambda: sender.peers.send_piece(1, 22, SEND, np.full(3, 1), 7, 5.0))
    assert receiver.next()[0] == (22, 3, 4, 5), "what is sent on a flow that is over comes all the same"


def test_a_flow_whose_connection_breaks_gets_another_at_the_same_level(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    sender.do(lambda: sender.peers.open_flows([messages.FlowToOpen(7, 3, 1)]))
    _, first = next_opened(sender)
    sender.do(lambda: sender.peers.rank_flows([messages.FlowRank(7, 4, 1e9)]))
    sender.do(lambda: sender.peers._outgoing[1, 7].connection.close("it was cut"))
    sender.do(lambda: sender.peers.send_piece(1, 30, SEND, np.full(3, 1), 7))
    number, second = next_opened(sender)
    assert (number, second != first) == (7, True)
    assert receiver.next()[0] == (30, 3, 4, 5)
    assert level_of(second) == 4
    sender.do(lambda: sender.peers.close_flows([7]))


@contextmanager
def _closed(segment: Segment) -> Iterator[Segment]:
    yield segment
    segment.close()
