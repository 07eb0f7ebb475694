"""Measures the runtime's transport: ``python benchmarks/runtime_transport.py [--json] [--rounds N]``.

Two processes of one machine talk. Every round measures the transport and what it is compared with one after the other,
and checks all bytes that arrive; shares are medians over the rounds of what one takes over what the other takes.

- ``shared_memory_share``: copying tuples within the consumer, from its memory into the places where they shall be, over
  having the other process send them there through shared memory, ``TUPLES`` at a time. The places are parts of the
  consumer's arena, the same for both. The key is for tuples of ``TUPLE_BYTES``; ``shared_memory_shares`` has others.
- ``tcp_share``: a bare loop of sendall and recv_into over loopback, over tuples by TCP; ``tcp_shares`` likewise.
- ``handle_s``: from handing over ``TUPLE_BYTES`` to the answer with their first and last bytes, in a segment that the
  other process has mapped, as it has an arena after the first handover, but where it has read nothing yet.
  ``handle_new_segment_s``: the same for a segment that it has yet to map.
- ``hop_64_s``, ``hop_4096_s``: half of a message's way there and back, by TCP, answered by the endpoints' threads;
  ``unix_hop_*_s`` by a Unix socket; ``bare_hop_*_s`` by a bare loop over blocking TCP sockets;
  ``tuple_hop_4096_s`` for tuples that arrive where they are expected.
"""

import argparse
import os
import queue
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from benchmarks.runtime_transport_producer import BARE_BULK, BARE_HOPS, ECHO, REQUEST, TOKEN, TUPLE, content, receive
from runtime.transport.arena import Arena
from runtime.transport.endpoint import Endpoint
from runtime.transport.errors import TransportError
from runtime.transport.framing import Tag
from runtime.transport.peer import Peer
from runtime.transport.shared_memory import Segment, copy

PRODUCER = Path(__file__).parent / "runtime_transport_producer.py"
TUPLE_BYTES = 64 << 20
SIZES_BYTES = (1 << 20, 16 << 20, TUPLE_BYTES)
TUPLES = 4
"""As many are under way at once."""
BYTES_PER_ROUND = TUPLES * TUPLE_BYTES
HOPS = 1000
_PATIENCE_S = 120.0

Figures = dict[str, object]

BUDGETS = (
    Budget("shared_memory_share", 0.8, is_least=True),
    Budget("tcp_share", 0.9, is_least=True),
    Budget("handle_s", 200e-6, is_least=False),
)


class Consumer:
    """The measuring process, and the other one as its peer."""

    bare: socket.socket
    """A connection to the other process that the transport knows nothing of."""

    def __init__(self) -> None:
        self.peers: queue.SimpleQueue[Peer] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.arrivals: queue.SimpleQueue[TransportError | None] = queue.SimpleQueue()
        self.on_message: Callable[[bytes], None] = self.answers.put
        self.numbers = iter(range(1, 1 << 62))
        self.arena = Arena(TUPLES * TUPLE_BYTES)

    def connected(self, peer: Peer) -> None:
        """Take note of the other process."""
        self.peers.put(peer)

    def message(self, _: Peer, payload: memoryview) -> None:
        """Take an answer."""
        self.on_message(bytes(payload))

    def handed_over(self, peer: Peer, tag: Tag, memory: memoryview) -> None:
        """Nobody hands over anything to a consumer."""

    def lost(self, _: Peer, cause: TransportError) -> None:
        """Fail what waits for a tuple."""
        self.arrivals.put(cause)

    def arrived(self) -> None:
        """Wait for one tuple."""
        cause = self.arrivals.get(timeout=_PATIENCE_S)
        if cause is not None:
            raise cause


@contextmanager
def served(address: str) -> Iterator[tuple[Consumer, Peer]]:
    """Yield a consumer and its peer, which is another process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        consumer = Consumer()
        with Endpoint("consumer", consumer, lambda _: TOKEN) as endpoint:
            endpoint.start()
            bound = endpoint.listen(address)
            with subprocess.Popen([sys.executable, PRODUCER, bound, f"{host}:{port}"]) as process:
                listener.settimeout(_PATIENCE_S)
                with listener.accept()[0] as consumer.bare:
                    consumer.bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    peer = consumer.peers.get(timeout=_PATIENCE_S)
                    yield consumer, peer
                    peer.close()
                    process.wait(_PATIENCE_S)


def transport_figures(rounds: int) -> Figures:
    """Measure everything; each figure is a median over so many rounds."""
    with served(f"unix:@trainyard-benchmark-{os.getpid()}") as local:
        figures = _shared_memory(*local, rounds) | _handles(*local, rounds)
        figures |= {f"unix_hop_{size}_s": median(_hop_s(*local, size) for _ in range(rounds)) for size in (64, 4096)}
    with served("127.0.0.1:0") as remote:
        return figures | _tcp(*remote, rounds) | _hops(*remote, rounds)


@dataclass(frozen=True)
class Destination:
    """Where a tuple shall be, which may be in a segment at an offset."""

    memory: memoryview
    segment: Segment | None = None
    offset_bytes: int = 0


def _shared_memory(consumer: Consumer, peer: Peer, rounds: int) -> Figures:
    shares, copy_bps = {}, {}
    for size_bytes in SIZES_BYTES:
        own = memoryview(content(size_bytes)).cast("B")
        buffers = [buffer for _ in range(TUPLES) if (buffer := consumer.arena.allocate(size_bytes))]
        destinations = [Destination(buffer.memory, buffer.segment, buffer.offset_bytes) for buffer in buffers]
        taken_s = _paired_s(
            partial(_copy, own, destinations), partial(_transfer, consumer, peer, destinations), destinations, rounds
        )
        for buffer in buffers:
            consumer.arena.free(buffer)
        shares[size_bytes] = median(bare_s / ours_s for bare_s, ours_s in taken_s)
        copy_bps[size_bytes] = 8 * size_bytes / median(bare_s for bare_s, _ in taken_s)
    return {"shared_memory_share": shares[TUPLE_BYTES], "shared_memory_shares": shares, "copy_bps": copy_bps}


def _tcp(consumer: Consumer, peer: Peer, rounds: int) -> Figures:
    shares, bare_bps = {}, {}
    for size_bytes in SIZES_BYTES:
        destinations = [Destination(memoryview(bytearray(size_bytes))) for _ in range(TUPLES)]
        taken_s = _paired_s(
            partial(_bare_transfer, consumer, peer, destinations),
            partial(_transfer, consumer, peer, destinations),
            destinations,
            rounds,
        )
        shares[size_bytes] = median(bare_s / ours_s for bare_s, ours_s in taken_s)
        bare_bps[size_bytes] = 8 * size_bytes / median(bare_s for bare_s, _ in taken_s)
    return {"tcp_share": shares[TUPLE_BYTES], "tcp_shares": shares, "bare_tcp_bps": bare_bps}


def _copy(own: memoryview, destinations: Sequence[Destination]) -> None:
    for destination in destinations:
        copy(own, destination.memory)


def _bare_transfer(consumer: Consumer, peer: Peer, destinations: Sequence[Destination]) -> None:
    for destination in destinations:
        peer.send(REQUEST.pack(BARE_BULK, len(destination.memory), 0))
    for destination in destinations:
        receive(consumer.bare, destination.memory)


def _transfer(consumer: Consumer, peer: Peer, destinations: Sequence[Destination]) -> None:
    """Have the other process send tuples whose places it knows before."""
    for destination in destinations:
        memory, number = destination.memory, next(consumer.numbers)
        peer.expect(
            Tag(number, 0, 0, 0),
            memory,
            consumer.arrivals.put,
            segment=destination.segment,
            offset_bytes=destination.offset_bytes,
        )
        peer.send(REQUEST.pack(TUPLE, len(memory), number))
    for _ in destinations:
        consumer.arrived()


def _paired_s(
    bare: Callable[[], None], ours: Callable[[], None], destinations: Sequence[Destination], rounds: int
) -> list[tuple[float, float]]:
    """Return what a tuple takes either way, in each round, after one that warms up."""
    arrays = [np.frombuffer(destination.memory, np.uint8) for destination in destinations]
    size_bytes = len(arrays[0])
    wanted, times = content(size_bytes), max(1, BYTES_PER_ROUND // TUPLES // size_bytes)
    taken_s = []
    for number in range(rounds + 1):
        pair_s = []
        for transfer in (bare, ours) if number % 2 else (ours, bare):
            for array in arrays:
                array[:] = 0
            begin_s = time.perf_counter()
            for _ in range(times):
                transfer()
            pair_s.append((time.perf_counter() - begin_s) / times / TUPLES)
            if not all(np.array_equal(array, wanted) for array in arrays):
                raise AssertionError(f"{size_bytes} bytes: what arrived is not what was sent")
        bare_s, ours_s = pair_s if number % 2 else reversed(pair_s)
        taken_s.append((bare_s, ours_s))
    return taken_s[1:]


def _handles(consumer: Consumer, peer: Peer, rounds: int) -> Figures:
    """Hand over the two halves of segments, one after the other; with the first the peer maps the segment."""
    wanted = content(2 * TUPLE_BYTES)
    segments = [Segment.create(len(wanted), is_read_only=True) for _ in range(rounds)]
    for segment in segments:
        np.frombuffer(segment.view, np.uint8)[:] = wanted
    taken_s: list[list[float]] = []
    for offset_bytes in (0, TUPLE_BYTES):
        taken_s.append([])
        for number, segment in enumerate(segments):
            begin_s = time.perf_counter()
            peer.hand_over(Tag(number, offset_bytes, 0, 0), segment, offset_bytes, TUPLE_BYTES)
            answer = consumer.answers.get(timeout=_PATIENCE_S)
            taken_s[-1].append(time.perf_counter() - begin_s)
            part = segment.part(offset_bytes, TUPLE_BYTES)
            _check(answer, bytes(part[:8]) + bytes(part[-8:]) + offset_bytes.to_bytes(4))
    first_s, again_s = map(median, taken_s)
    return {"handle_s": again_s, "handle_new_segment_s": first_s}


def _hops(consumer: Consumer, peer: Peer, rounds: int) -> Figures:
    figures: Figures = {}
    taken_s: dict[str, list[float]] = {}
    peer.send(REQUEST.pack(ECHO, 0, 1 << 62))
    echo_numbers = iter(range(1 << 62, 1 << 63))
    for _ in range(rounds):
        for size_bytes in (64, 4096):
            taken_s.setdefault(f"bare_hop_{size_bytes}_s", []).append(_bare_hop_s(consumer, peer, size_bytes))
            taken_s.setdefault(f"hop_{size_bytes}_s", []).append(_hop_s(consumer, peer, size_bytes))
        taken_s.setdefault("tuple_hop_4096_s", []).append(_tuple_hop_s(consumer, peer, echo_numbers))
    for name, each_s in taken_s.items():
        figures[name] = median(each_s)
    return figures


def _bare_hop_s(consumer: Consumer, peer: Peer, size_bytes: int) -> float:
    peer.send(REQUEST.pack(BARE_HOPS, size_bytes, HOPS))
    payload, memory = os.urandom(size_bytes), memoryview(bytearray(size_bytes))
    begin_s = time.perf_counter()
    for _ in range(HOPS):
        consumer.bare.sendall(payload)
        receive(consumer.bare, memory)
    taken_s = time.perf_counter() - begin_s
    _check(bytes(memory), payload)
    return taken_s / HOPS / 2


def _hop_s(consumer: Consumer, peer: Peer, size_bytes: int) -> float:
    """Let a message go to and fro, returned by the endpoint's thread on either side."""
    payload, left = os.urandom(size_bytes), HOPS

    def returned(answer: bytes) -> None:
        nonlocal left
        left -= 1
        if left:
            peer.send(answer)
        else:
            consumer.answers.put(answer)

    consumer.on_message = returned
    begin_s = time.perf_counter()
    peer.send(payload)
    answer = consumer.answers.get(timeout=_PATIENCE_S)
    taken_s = time.perf_counter() - begin_s
    consumer.on_message = consumer.answers.put
    _check(answer, payload)
    return taken_s / HOPS / 2


def _tuple_hop_s(consumer: Consumer, peer: Peer, numbers: Iterator[int]) -> float:
    """Let a tuple of 4 kB go to and fro; either side expects the next before it sends."""
    payload, memory, left = memoryview(os.urandom(4096)), memoryview(bytearray(4096)), HOPS

    def send() -> None:
        number = next(numbers)
        peer.expect(Tag(number, 1, 0, 0), memory, arrived)
        peer.send_tuple(Tag(number, 0, 0, 0), payload, lambda _: None)

    def arrived(cause: TransportError | None) -> None:
        nonlocal left
        left -= 1
        if cause is None and left:
            send()
        else:
            consumer.arrivals.put(cause)

    begin_s = time.perf_counter()
    send()
    consumer.arrived()
    taken_s = time.perf_counter() - begin_s
    _check(bytes(memory), bytes(payload))
    return taken_s / HOPS / 2


def _check(received: bytes, sent: bytes) -> None:
    if received != sent:
        raise AssertionError(f"{len(sent)} bytes: what came back is not what was sent")


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts (default: 5)")
    options = parser.parse_args()
    figures = transport_figures(options.rounds)
    rows = budget_rows(BUDGETS, figures)
    figures |= {"budgets": rows, "rounds": options.rounds, **provenance(("numpy",))}
    print_figures(figures, as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
