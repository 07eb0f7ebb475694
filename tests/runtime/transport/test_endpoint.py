import contextlib
import itertools
import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.transport import handshake, tcp
from runtime.transport.endpoint import Endpoint
from runtime.transport.errors import FrameError, HandshakeError, PeerLostError, WithdrawnError
from runtime.transport.framing import EAGER_BYTES, MOST_MESSAGE_BYTES, NO_TAG, Kind, Place, Tag, header, packed_place
from runtime.transport.handshake import Introduction, Purpose
from runtime.transport.shared_memory import Segment
from tests.runtime.transport.processes import PATIENCE_S, TOKEN, Ends, Heard, Pair, connected

TAG = Tag(7, 1, 2, 3)
MEBIBYTE = 1 << 20
SIZES = (0, 1, 4096, EAGER_BYTES, EAGER_BYTES + 1, 5 * MEBIBYTE + 3)
_NUMBERS = itertools.count()


def unix_address() -> str:
    return f"unix:@trainyard-test-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture(params=["tcp", "unix"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with connected("127.0.0.1:0" if request.param == "tcp" else unix_address()) as made:
        yield made


@pytest.fixture
def local() -> Iterator[Pair]:
    with connected(unix_address()) as made:
        yield made


def test_messages_arrive_in_order_whatever_their_size(pair: Pair) -> None:
    messages = [b"first", secrets.token_bytes(3 * MEBIBYTE), b"", b"last"]
    for message in messages:
        pair.of_client.send(message)
        pair.of_server.send(message)
    for heard in (pair.server_heard, pair.client_heard):
        assert [heard.messages.get(timeout=PATIENCE_S) for _ in messages] == messages
    with pytest.raises(ValueError, match="more than"):
        pair.of_client.send(bytes(MOST_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("size_bytes", SIZES)
@pytest.mark.parametrize("expected_first", [True, False])
@pytest.mark.parametrize("is_shared", [True, False])
def test_a_tuple_arrives_where_its_consumer_wants_it(
    pair: Pair, size_bytes: int, expected_first: bool, is_shared: bool
) -> None:
    payload, (sent, arrived) = secrets.token_bytes(size_bytes), (Ends(), Ends())
    segment = Segment.create(6 * MEBIBYTE) if is_shared else None
    memory = segment.part(4096, size_bytes) if segment else memoryview(bytearray(size_bytes))

    def expect() -> None:
        pair.of_server.expect(TAG, memory, arrived, segment=segment, offset_bytes=4096 if segment else 0)

    if expected_first:
        expect()
    pair.of_client.send_tuple(TAG, memoryview(payload), sent)
    if not expected_first:
        expect()
    assert sent.wait() is None
    assert arrived.wait() is None
    assert memory == payload
    if segment:
        assert not any(segment.part(0, 4096))
        assert not any(segment.part(4096 + size_bytes, 64))


def test_many_tuples_both_ways_from_several_threads(pair: Pair) -> None:
    sizes = [17, 4096, EAGER_BYTES + 1, 100_000, 700_001]
    ends: list[tuple[Ends, memoryview, bytes]] = []

    def exchange(sender: object, receiver: object, edge: int) -> None:
        assert hasattr(sender, "send_tuple")
        assert hasattr(receiver, "expect")
        for number in range(40):
            payload = bytes([number, edge]) * (sizes[number % len(sizes)] // 2)
            memory, arrived, tag = memoryview(bytearray(len(payload))), Ends(), Tag(number, edge, 0, 0)
            ends.append((arrived, memory, payload))
            sender.send_tuple(tag, memoryview(payload), Ends())
            receiver.expect(tag, memory, arrived)

    threads = [
        threading.Thread(target=exchange, args=(pair.of_client, pair.of_server, 1)),
        threading.Thread(target=exchange, args=(pair.of_client, pair.of_server, 2)),
        threading.Thread(target=exchange, args=(pair.of_server, pair.of_client, 1)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for arrived, memory, payload in ends:
        assert arrived.wait() is None
        assert memory == payload


def test_bulk_that_waits_for_its_place_holds_up_nothing(pair: Pair) -> None:
    large, small = memoryview(bytes(8 * MEBIBYTE)), b"small"
    sent, arrived = Ends(), Ends()
    pair.of_client.send_tuple(TAG, large, sent)
    other = memoryview(bytearray(MEBIBYTE))
    pair.of_client.send_tuple(TAG._replace(edge=9), memoryview(b"\1" * MEBIBYTE), Ends())
    pair.of_server.expect(TAG._replace(edge=9), other, arrived)
    pair.of_client.send(small)
    assert arrived.wait() is None
    assert pair.server_heard.messages.get(timeout=PATIENCE_S) == small
    assert not sent.causes, "nobody has given it a place"


def test_memory_is_handed_over_to_be_read_only(local: Pair) -> None:
    segment = Segment.create(MEBIBYTE, is_read_only=True)
    segment.view[100:106] = b"before"
    local.of_server.hand_over(TAG, segment, 100, 6)
    tag, memory = local.client_heard.handovers.get(timeout=PATIENCE_S)
    assert (tag, bytes(memory)) == (TAG, b"before")
    segment.view[100:106] = b"after!"
    assert bytes(memory) == b"after!"
    assert memory.readonly
    with pytest.raises(FrameError, match="are not inside"):
        local.of_server.hand_over(TAG, segment, MEBIBYTE, 1)


def test_nothing_is_handed_over_by_tcp() -> None:
    with connected("127.0.0.1:0") as pair, pytest.raises(ValueError, match="one host alone"):
        pair.of_server.hand_over(TAG, Segment.create(4096), 0, 1)


def test_withdrawing_ends_both_sides_and_what_comes_late_is_dropped(pair: Pair) -> None:
    offered, expected, other = Ends(), Ends(), Ends()
    payload, memory = memoryview(bytes(MEBIBYTE)), memoryview(bytearray(MEBIBYTE))
    pair.of_client.send_tuple(TAG, payload, offered)
    pair.of_server.expect(TAG._replace(edge=5), memory, expected)
    pair.of_server.expect(TAG._replace(execution=8), memoryview(bytearray(3)), other)
    pair.of_client.send_tuple(TAG._replace(edge=6), memoryview(b"early"), Ends())
    pair.of_server.withdraw(TAG.execution)
    assert isinstance(expected.wait(), WithdrawnError)
    assert isinstance(offered.wait(), WithdrawnError)
    for refused in (
        lambda: pair.of_client.send_tuple(TAG._replace(edge=7), payload, Ends()),
        lambda: pair.of_client.send_tuple(TAG._replace(edge=7), memoryview(b"small"), Ends()),
        lambda: pair.of_server.expect(TAG, memory, Ends()),
    ):
        with pytest.raises(WithdrawnError, match="execution 7"):
            refused()
    pair.of_client.send_tuple(TAG._replace(execution=8), memoryview(b"abc"), Ends())
    assert other.wait() is None


def test_what_is_expected_ends_where_the_producer_withdraws(pair: Pair) -> None:
    expected = [Ends(), Ends()]
    pair.of_server.expect(TAG, memoryview(bytearray(MEBIBYTE)), expected[0])
    pair.of_server.expect(TAG._replace(edge=5), memoryview(bytearray(5)), expected[1])
    pair.of_client.withdraw(TAG.execution)
    for each in expected:
        assert isinstance(each.wait(), WithdrawnError)


def test_losing_a_peer_ends_everything_with_the_cause(pair: Pair) -> None:
    expected, offered = Ends(), Ends()
    pair.of_server.expect(TAG, memoryview(bytearray(MEBIBYTE)), expected)
    pair.of_server.send_tuple(TAG, memoryview(bytes(MEBIBYTE)), offered)
    pair.client.close()
    cause = pair.server_heard.losses.get(timeout=PATIENCE_S)
    assert str(cause) == "client is lost: it ended the connection"
    assert expected.wait() is cause
    assert offered.wait() is cause
    assert pair.of_server.is_lost
    pair.of_server.withdraw(TAG.execution)
    for refused in (
        lambda: pair.of_server.send(b""),
        lambda: pair.of_server.send_tuple(TAG, memoryview(b"small"), Ends()),
        lambda: pair.of_server.send_tuple(TAG, memoryview(bytes(MEBIBYTE)), Ends()),
        lambda: pair.of_server.expect(TAG, memoryview(bytearray(1)), Ends()),
    ):
        with pytest.raises(PeerLostError, match="client is lost"):
            refused()


def test_either_end_can_close_the_connection(pair: Pair) -> None:
    pair.of_client.close()
    assert "this process closed" in str(pair.client_heard.losses.get(timeout=PATIENCE_S))
    assert "it ended the connection" in str(pair.server_heard.losses.get(timeout=PATIENCE_S))


def test_a_sender_waits_while_its_peer_does_not_read() -> None:
    heard = Heard()
    with Endpoint("server", heard, {"client": TOKEN}.get) as server, Endpoint("client", Heard()) as client:
        client.start()
        address = server.listen("127.0.0.1:0")
        connecting = threading.Thread(target=lambda: peers.append(client.connect(address, TOKEN)))
        peers = []
        connecting.start()
        while connecting.is_alive():
            server.poll(0.01)
        count = 20
        sent = []

        def send() -> None:
            for number in range(count):
                peers[0].send(bytes([number]) * 4 * MEBIBYTE)
                sent.append(number)

        sending = threading.Thread(target=send)
        sending.start()
        time.sleep(0.3)
        assert len(sent) < count - 3, "nobody reads, and most of it does not fit into the buffers"
        got = 0
        end_s = time.monotonic() + PATIENCE_S
        while got < count and time.monotonic() < end_s:
            server.poll(0.01)
            while not heard.messages.empty():
                assert heard.messages.get()[0] == got
                got += 1
        assert got == count
        sending.join()


def test_a_process_with_a_loop_of_its_own_polls() -> None:
    heard = Heard()
    with Endpoint("server", heard, {"client": TOKEN}.get) as server, Endpoint("client", Heard()) as client:
        address = server.listen("127.0.0.1:0")
        connecting = threading.Thread(target=lambda: client.connect(address, TOKEN).send(b"hello"))
        connecting.start()
        while heard.messages.empty():
            readable, _, _ = select.select([server], [], [], PATIENCE_S)
            assert readable == [server]
            server.poll(0)
        assert heard.messages.get() == b"hello"
        connecting.join()


def introduced(address: str, purpose: Purpose, link: bytes) -> socket.socket:
    """Connect as a client that knows its token, to send what no client would."""
    connection = tcp.connect(address, PATIENCE_S)
    handshake.introduce(connection, Introduction("client", purpose, link), TOKEN)
    return connection


PLACE = packed_place(Place(4, 0, 100))
NO_SEGMENT = packed_place(Place(0, 0, 100_000))


@pytest.mark.parametrize(
    ("purpose", "frames", "words"),
    [
        (Purpose.MESSAGES, b"\xff" * 32, "kind 255, which does not exist"),
        (Purpose.MESSAGES, header(Kind.TUPLE, TAG, 1 << 40), "TUPLE with 1099511627776 bytes"),
        (Purpose.MESSAGES, header(Kind.SEGMENT, NO_TAG, 24) + PLACE, "without its descriptor"),
        (Purpose.MESSAGES, header(Kind.HANDOVER, TAG, 24) + PLACE, "segment 4, which client has not sent"),
        (Purpose.MESSAGES, 2 * (header(Kind.TUPLE, TAG, 1) + b"x"), "the tuple came twice"),
        (Purpose.MESSAGES, header(Kind.READY, TAG, 24) + PLACE, "segment 4, which client has not sent"),
        (Purpose.MESSAGES, 2 * (header(Kind.READY, TAG, 24) + NO_SEGMENT), "a second place"),
        (Purpose.BULK, header(Kind.TUPLE, TAG, 100_000), "100000 bytes, which was not granted"),
        (Purpose.BULK, header(Kind.PLACED, TAG, 0), "no place was granted"),
        (Purpose.BULK, header(Kind.WITHDRAWN, TAG, 0), "nobody had asked for it"),
        (Purpose.BULK, header(Kind.MESSAGE, TAG, 1), "kind 1, which does not exist on the connection for bulk"),
    ],
)
@pytest.mark.parametrize("is_local", [True, False])
def test_what_no_peer_may_send_ends_its_connection_alone(
    purpose: Purpose, frames: bytes, words: str, is_local: bool
) -> None:
    heard, link = Heard(), secrets.token_bytes(16)
    with (
        Endpoint("server", heard, {"client": TOKEN, "other": TOKEN}.get) as server,
        Endpoint("other", Heard()) as other,
    ):
        server.start()
        address = server.listen(unix_address() if is_local else "127.0.0.1:0")
        good = other.connect(address, TOKEN)
        with introduced(address, Purpose.MESSAGES, link) as messages, introduced(address, Purpose.BULK, link) as bulk:
            (messages if purpose is Purpose.MESSAGES else bulk).sendall(frames)
            cause = str(heard.losses.get(timeout=PATIENCE_S))
            assert cause.startswith("client is lost: ")
            assert words in cause
            messages.settimeout(PATIENCE_S)
            with contextlib.suppress(ConnectionResetError):
                assert messages.recv(1) == b""
        good.send(b"unharmed")
        assert heard.messages.get(timeout=PATIENCE_S) == b"unharmed"


def test_a_tuple_of_the_wrong_size_ends_the_connection(pair: Pair) -> None:
    arrived = Ends()
    pair.of_server.expect(TAG, memoryview(bytearray(100_000)), arrived)
    pair.of_server.send(b"expected")
    assert pair.client_heard.messages.get(timeout=PATIENCE_S) == b"expected"
    with pytest.raises(ValueError, match="100001 bytes, where the consumer expects 100000"):
        pair.of_client.send_tuple(TAG, memoryview(bytes(100_001)), Ends())
    pair.of_client.send_tuple(TAG, memoryview(b"far too small"), Ends())
    assert "13 bytes, expected 100000" in str(arrived.wait())


def test_strangers_are_turned_away() -> None:
    heard = Heard()
    with Endpoint("server", heard, {"client": TOKEN}.get) as server, Endpoint("client", Heard()) as client:
        server.start()
        address = server.listen("127.0.0.1:0")
        with pytest.raises(HandshakeError):
            client.connect(address, b"another token")
        with Endpoint("nobody", Heard()) as nobody, pytest.raises(HandshakeError):
            nobody.connect(address, TOKEN)
        with tcp.connect(address, PATIENCE_S) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.settimeout(PATIENCE_S)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(1000):
                    pass
        client.connect(address, TOKEN).send(b"known")
        assert heard.messages.get(timeout=PATIENCE_S) == b"known"


def test_a_server_that_does_not_know_the_token_is_refused() -> None:
    """What it may read teaches it nothing, and it cannot prove that it knows the token."""
    ours, theirs = socket.socketpair()
    failures: list[Exception] = []

    def call() -> None:
        try:
            handshake.introduce(ours, Introduction("client", Purpose.MESSAGES, bytes(16)), TOKEN)
        except HandshakeError as error:
            failures.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    with ours, theirs:
        theirs.sendall(b"trainyd1" + bytes(32))
        assert TOKEN not in theirs.recv(1000)
        theirs.sendall(bytes([6]) + b"server" + bytes(32))
        calling.join()
    assert "does not know the token" in str(failures[0])


def num_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_thread_and_no_descriptor_outlives_its_endpoint() -> None:
    threads, descriptors = threading.active_count(), num_descriptors()
    for address in ("127.0.0.1:0", unix_address()):
        with connected(address) as pair:
            segment = Segment.create(MEBIBYTE)
            arrived = Ends()
            pair.of_server.expect(TAG, segment.part(0, 100_000), arrived, segment=segment)
            pair.of_client.send_tuple(TAG, memoryview(bytes(100_000)), Ends())
            assert arrived.wait() is None
            segment.close()
    assert threading.active_count() == threads
    assert num_descriptors() == descriptors
