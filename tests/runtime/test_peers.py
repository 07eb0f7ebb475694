"""Pieces, failures and loans between two hosts, and what no host may send."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from errno import EMFILE
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime import messages
from runtime.addresses import dialled, listening
from runtime.executor import listening as executor_listening
from runtime.frames import LOAN, PIECE, RETURN, Kind, prefix
from runtime.messages import Failure
from runtime.transport.arrays import LEAST_BYTES
from runtime.transport.shared_memory import Segment
from tests.patience import PATIENCE_S
from tests.runtime.peer_hosts import ITEMS, ROOM_BYTES, SECRET, SEND, TCP, Host, two_hosts


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    folder = tmp_path_factory.mktemp("hosts")
    with two_hosts(f"unix:{folder}/0", f"unix:{folder}/1") as hosts:
        yield hosts


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[Host, Host]]:
    with two_hosts(*TCP) as hosts:
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


class Full(socket.socket):
    """A listener of a process that has no descriptor left at first."""

    is_full = True

    def accept(self) -> tuple[socket.socket, Any]:
        if self.is_full:
            self.is_full = False
            raise OSError(EMFILE, "Too many open files")
        return super().accept()


def test_who_connects_to_a_host_without_descriptors_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_listening, "listening", lambda address: Full(fileno=listening(address).detach()))
    with two_hosts(*TCP) as (sender, receiver):
        sender.send(0, np.full(3, 7))
        assert receiver.next()[0] == (0, 3, 4, 5)


@contextmanager
def _closed(segment: Segment) -> Iterator[Segment]:
    yield segment
    segment.close()
