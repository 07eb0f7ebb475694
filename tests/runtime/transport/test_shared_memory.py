import mmap
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.executor.loop import Loop
from runtime.executor.trimming import Trimming
from runtime.frames import FrameError
from runtime.transport.arena import ALIGNMENT_BYTES, Arena, FreeList
from runtime.transport.shared_memory import Segment
from runtime.transport.warmth import BLOCK_BYTES


def test_both_see_what_either_writes() -> None:
    segment = Segment.create(3 * 4096)
    other = Segment.attach(os.dup(segment.descriptor))
    other.view[5000:5005] = b"there"
    segment.view[0:4] = b"here"
    assert bytes(segment.part(5000, 5)) == b"there"
    assert bytes(other.part(0, 4)) == b"here"


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
        with pytest.raises(FrameError, match="segment"):
            Segment.attach(descriptor)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    for offset_bytes, size_bytes in ((4090, 10), (-1, 2), (0, -1)):
        with pytest.raises(FrameError, match=f"{size_bytes} bytes at {offset_bytes} are not inside"):
            Segment.create(4096).part(offset_bytes, size_bytes)


def test_a_closed_segment_goes_with_its_last_view() -> None:
    segment = Segment.create(4096)
    part = segment.part(0, 4)
    descriptor = segment.descriptor
    segment.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    part[:] = b"seen"
    assert isinstance(part.obj, mmap.mmap)
    assert part.obj[:4] == b"seen"


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


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 40)), max_size=30))
def test_parts_of_free_ranges_are_taken_where_they_are_free(steps: list[tuple[int, int]]) -> None:
    free, used = FreeList(100), bytearray(100)
    for offset, size in steps:
        if offset + size <= 100 and not any(used[offset : offset + size]):
            free.take_at(offset, size)
            used[offset : offset + size] = b"\1" * size
        else:
            with pytest.raises(ValueError, match="taken already"):
                free.take_at(offset, size)
        mapped = bytearray(b"\1" * 100)
        for begin, length in free.ranges:
            mapped[begin : begin + length] = bytes(length)
        assert mapped == used


def test_ranges_of_an_arena_are_apart_aligned_and_reused() -> None:
    arena = Arena(8 * ALIGNMENT_BYTES)
    assert [arena.allocate(ALIGNMENT_BYTES + 1) for _ in range(4)] == [0, 128, 256, 384]
    assert arena.used_bytes == 8 * ALIGNMENT_BYTES
    assert arena.allocate(0) is None
    assert arena.size_bytes(128) == 128
    arena.free(128)
    assert arena.used_bytes == 6 * ALIGNMENT_BYTES
    assert arena.allocate(ALIGNMENT_BYTES) == 128


def test_an_arena_takes_what_is_freed_while_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector runs wherever memory is taken, and may free arrays and make new ones."""
    arena = Arena(4 * ALIGNMENT_BYTES)
    held = arena.allocate(1)
    assert held is not None
    take, allocated = FreeList.take, []

    def interrupted(free: FreeList, size_bytes: int) -> int | None:
        if not allocated:
            allocated.append(arena.allocate(1))
            arena.free(held)
        return take(free, size_bytes)

    monkeypatch.setattr(FreeList, "take", interrupted)
    assert arena.allocate(1) == ALIGNMENT_BYTES
    assert allocated == [None]
    assert arena.used_bytes == ALIGNMENT_BYTES


def test_an_arena_gives_back_what_was_not_used_for_a_period() -> None:
    arena = Arena(8 * BLOCK_BYTES)
    offsets = [arena.allocate(2 * BLOCK_BYTES) for _ in range(3)]
    assert offsets == [0, 2 * BLOCK_BYTES, 4 * BLOCK_BYTES]
    arena.segment.view[: 6 * BLOCK_BYTES] = b"\1" * (6 * BLOCK_BYTES)
    assert arena.segment.resident_bytes == 6 * BLOCK_BYTES
    arena.free(0)
    arena.free(4 * BLOCK_BYTES)
    assert arena.give_back(8 * BLOCK_BYTES) == 0, "it was used just now"
    arena.age()
    assert arena.give_back(8 * BLOCK_BYTES) == 0, "it was used in the period before"
    assert arena.allocate(BLOCK_BYTES) == 0
    arena.free(0)
    arena.age()
    assert [arena.give_back(2 * BLOCK_BYTES) for _ in range(3)] == [2 * BLOCK_BYTES, BLOCK_BYTES, 0]
    assert arena.segment.resident_bytes == 3 * BLOCK_BYTES, "what is in use stays, and what was used again"
    assert bytes(arena.segment.part(2 * BLOCK_BYTES, 2 * BLOCK_BYTES)) == b"\1" * (2 * BLOCK_BYTES)
    arena.age()
    assert arena.give_back(8 * BLOCK_BYTES) == BLOCK_BYTES
    assert arena.segment.resident_bytes == 2 * BLOCK_BYTES
    assert arena.used_bytes == 2 * BLOCK_BYTES
    assert arena.allocate(2 * BLOCK_BYTES) == 0


def test_only_what_has_content_is_zeroed() -> None:
    arena = Arena(4 * BLOCK_BYTES)
    assert arena.allocate_zeros(3 * BLOCK_BYTES) == 0
    assert arena.segment.resident_bytes == 0, "new memory is zero by itself"
    arena.segment.view[: 2 * BLOCK_BYTES] = b"\1" * (2 * BLOCK_BYTES)
    arena.free(0)
    assert arena.allocate_zeros(3 * BLOCK_BYTES) == 0
    assert not any(arena.segment.part(0, 3 * BLOCK_BYTES))


def test_memory_that_a_peak_has_left_is_given_back_in_time() -> None:
    arena, loop = Arena(64 * BLOCK_BYTES), Loop()
    assert arena.allocate(48 * BLOCK_BYTES) == 0
    arena.segment.view[: 48 * BLOCK_BYTES] = b"\1" * (48 * BLOCK_BYTES)
    Trimming(loop, arena, 0.01)
    arena.free(0)

    def look() -> None:
        if arena.segment.resident_bytes:
            loop.at(time.perf_counter() + 0.01, look)
        else:
            loop.stop()

    look()
    loop.run()
    assert arena.allocate(64 * BLOCK_BYTES) == 0
