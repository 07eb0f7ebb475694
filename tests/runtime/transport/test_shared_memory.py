import gc
import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.transport.arena import ALIGNMENT_BYTES, Arena, FreeList
from runtime.transport.endpoint import Endpoint
from runtime.transport.errors import FrameError
from runtime.transport.framing import Tag
from runtime.transport.shared_memory import Segment, copy
from tests.runtime.transport.processes import PATIENCE_S, Ends, Heard

MEBIBYTE = 1 << 20


def attached(segment: Segment) -> Segment:
    return Segment.attach(segment.number, os.dup(segment.descriptor), len(segment.view))


def test_both_see_what_either_writes() -> None:
    segment = Segment.create(3 * 4096)
    other = attached(segment)
    other.view[5000:5005] = b"there"
    segment.view[0:4] = b"here"
    assert bytes(segment.part(5000, 5)) == b"there"
    assert bytes(other.part(0, 4)) == b"here"


def test_a_read_only_segment_is_its_owners_alone_to_write() -> None:
    segment = Segment.create(4096, is_read_only=True)
    other = attached(segment)
    segment.view[:3] = b"own"
    assert bytes(other.view[:3]) == b"own"
    assert other.is_read_only
    assert other.view.readonly
    with pytest.raises(PermissionError):
        mmap.mmap(segment.descriptor, 4096)
    with pytest.raises(PermissionError):
        os.pwrite(segment.descriptor, b"x", 0)


def test_nobody_takes_mapped_pages_away() -> None:
    segment = Segment.create(8192)
    for size_bytes in (4096, 12288):
        with pytest.raises(PermissionError):
            os.ftruncate(segment.descriptor, size_bytes)


def test_what_is_no_segment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(4096))
    reader, writer = os.pipe()
    os.close(writer)
    unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(unsealed, 4096)
    for descriptor in (os.open(tmp_path / "file", os.O_RDWR), reader, unsealed):
        with pytest.raises(FrameError, match="segment 5"):
            Segment.attach(5, descriptor, 4096)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    with pytest.raises(FrameError, match="expected 8192 bytes"):
        Segment.attach(5, os.dup(Segment.create(4096).descriptor), 8192)
    with pytest.raises(FrameError, match="10 bytes at 4090 are not inside"):
        Segment.create(4096).part(4090, 10)


def test_copying_copies() -> None:
    destination = bytearray(100)
    copy(memoryview(b"0123456789"), memoryview(destination)[50:60])
    assert destination == bytes(50) + b"0123456789" + bytes(40)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=60))
def test_free_ranges_are_what_a_map_of_bytes_says(steps: list[tuple[bool, int]]) -> None:
    size = 100
    free, used, taken = FreeList(size), bytearray(size), []
    for is_taking, number in steps:
        if is_taking:
            offset = free.take(number)
            assert offset == (found if (found := used.find(bytes(number))) >= 0 else None)
            if offset is not None:
                used[offset : offset + number] = b"\1" * number
                taken.append((offset, number))
        elif taken:
            offset, given_size = taken.pop(number % len(taken))
            free.give(offset, given_size)
            used[offset : offset + given_size] = bytes(given_size)
            with pytest.raises(ValueError, match="free already"):
                free.give(offset, given_size)
        assert free.free_bytes == used.count(0)


def test_buffers_of_an_arena_are_apart_aligned_and_reused() -> None:
    arena = Arena(8 * ALIGNMENT_BYTES)
    buffers = [arena.allocate(ALIGNMENT_BYTES + 1) for _ in range(4)]
    assert arena.free_bytes == 0
    assert arena.allocate(0) is None
    assert [each.offset_bytes for each in buffers if each] == [0, 128, 256, 384]
    first = buffers[0]
    assert first is not None
    first.memory[:5] = b"first"
    assert bytes(first.segment.part(0, 5)) == b"first"
    arena.free(first)
    with pytest.raises(ValueError, match="free already"):
        arena.free(first)
    again = arena.allocate(2 * ALIGNMENT_BYTES)
    assert again is not None
    assert again.offset_bytes == 0


CONSUMER = """
import sys
from runtime.transport.arena import Arena
from runtime.transport.endpoint import Endpoint
from runtime.transport.framing import Tag

class Receiver:
    def connected(self, peer): pass
    def message(self, peer, payload): pass
    def handed_over(self, peer, tag, memory): print("handed over", bytes(memory[:6]).decode(), flush=True)
    def lost(self, peer, cause): print(cause, flush=True)

def arrived(cause):
    print("arrived" if cause is None else f"not arrived: {cause}", bytes(buffer.memory[:6]).decode(), flush=True)

with Endpoint("consumer", Receiver()) as endpoint:
    endpoint.start()
    peer = endpoint.connect(sys.argv[1], b"token")
    buffer = Arena(1 << 22).allocate(1 << 20)
    shared = {"segment": buffer.segment, "offset_bytes": buffer.offset_bytes}
    for edge in (0, 1):
        peer.expect(Tag(1, edge, 0, 0), buffer.memory, arrived, **shared)
    print("expecting", flush=True)
    sys.stdin.read()
"""


def num_mapped() -> int:
    """How many segments this process has mapped; the kernel keeps none for a process that was killed."""
    gc.collect()
    return Path("/proc/self/maps").read_text().count("memfd:trainyard")


def test_a_killed_consumer_is_noticed_and_leaves_nothing() -> None:
    heard, address = Heard(), f"unix:@trainyard-killed-{os.getpid()}"
    mapped_before = num_mapped()
    with Endpoint("producer", heard, {"consumer": b"token"}.get) as producer:
        producer.start()
        producer.listen(address)
        with subprocess.Popen(
            [sys.executable, "-c", CONSUMER, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "expecting\n"
            peer = heard.connections.get(timeout=PATIENCE_S)
            sent, lost = Ends(), Ends()
            peer.send_tuple(Tag(1, 0, 0, 0), memoryview(b"shared" * MEBIBYTE)[:MEBIBYTE], sent)
            assert sent.wait() is None
            assert consumer.stdout.readline() == "arrived shared\n"
            parameters = Segment.create(MEBIBYTE, is_read_only=True)
            parameters.view[:6] = b"theirs"
            peer.hand_over(Tag(1, 2, 0, 0), parameters, 0, MEBIBYTE)
            assert consumer.stdout.readline() == "handed over theirs\n"
            peer.send_tuple(Tag(1, 3, 0, 0), memoryview(bytes(MEBIBYTE)), lost)
            consumer.send_signal(signal.SIGKILL)
            assert "consumer is lost" in str(lost.wait())
            assert heard.losses.get(timeout=PATIENCE_S) is lost.causes[0]
        assert num_mapped() == mapped_before + 1, "its own parameters"
        del parameters
    assert num_mapped() == mapped_before
