import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.frames import GREETING_BYTES, MOST_BYTES, Frame, FrameError, FrameReader, prefix

_frames = st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=40), st.sampled_from([0, 1, 7, 5_000, 200_000])))


def received(wire: bytes, sizes: list[int]) -> list[tuple[int, bytes, bytes]]:
    """What a reader makes of bytes that arrive in portions of these sizes, over and over."""
    reader, found, at, turn = FrameReader(MOST_BYTES), [], 0, 0
    while at < len(wire):
        memory = reader.memory()
        size = min(len(memory), len(wire) - at, sizes[turn % len(sizes)])
        memory[:size] = wire[at : at + size]
        found += [(frame.kind, frame.header, bytes(frame.payload)) for frame in reader.received(size)]
        at, turn = at + size, turn + 1
    return found


@given(_frames, st.lists(st.sampled_from([1, 13, 999, 65_536, 1 << 20]), min_size=1))
def test_frames_arrive_whole_and_in_order_however_they_are_cut(
    frames: list[tuple[int, bytes, int]], sizes: list[int]
) -> None:
    sent = [(kind, header, bytes([number % 251]) * size) for number, (kind, header, size) in enumerate(frames)]
    wire = b"".join(prefix(kind, header, len(payload)) + payload for kind, header, payload in sent)
    if len(wire) > 100_000:
        sizes = [size for size in sizes if size > 13] or [999]
    assert received(wire, sizes) == sent


def test_a_stranger_may_not_send_a_large_frame() -> None:
    reader = FrameReader()
    head = prefix(0, b"", GREETING_BYTES + 1)
    reader.memory()[: len(head)] = head
    with pytest.raises(FrameError, match="at most"):
        list(reader.received(len(head)))


def test_a_header_that_is_larger_than_the_buffer_arrives() -> None:
    header = b"h" * 1_000_000
    assert received(prefix(0, header, 3) + b"end", [65_536]) == [Frame(0, header, b"end")]  # type: ignore[arg-type]
