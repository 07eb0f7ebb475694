import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.transport.errors import FrameError
from runtime.transport.framing import (
    EAGER_BYTES,
    HEADER_BYTES,
    MOST_BULK_BYTES,
    MOST_MESSAGE_BYTES,
    NO_TAG,
    Decoder,
    Kind,
    Place,
    Tag,
    bulk_header,
    header,
    packed_place,
    place_of,
)

TAGS = st.builds(
    Tag,
    execution=st.integers(0, 2**64 - 1),
    edge=st.integers(0, 2**32 - 1),
    shard=st.integers(0, 2**32 - 1),
    source=st.integers(0, 2**32 - 1),
)
SIZES = st.one_of(st.integers(0, 100), st.sampled_from([EAGER_BYTES - 1, EAGER_BYTES]))
LARGE_SIZES = st.sampled_from([2 * EAGER_BYTES - HEADER_BYTES, 2 * EAGER_BYTES - HEADER_BYTES + 1, 300_001])
FRAMES = st.one_of(
    st.tuples(st.just(Kind.MESSAGE), st.just(NO_TAG), st.one_of(SIZES, LARGE_SIZES)),
    st.tuples(st.just(Kind.TUPLE), TAGS, SIZES),
    st.tuples(st.just(Kind.WITHDRAW), TAGS, st.just(0)),
    st.tuples(st.sampled_from([Kind.READY, Kind.SEGMENT, Kind.HANDOVER]), TAGS, st.just(24)),
)
Decoded = list[tuple[Kind, Tag, bytes]]


def decoded(stream: bytes, most_bytes: Sequence[int]) -> Decoded:
    """Receive a stream in parts of at most so many bytes, over and over."""
    decoder, frames, index = Decoder(), [], 0
    while stream:
        buffer = decoder.buffer()
        count = min(len(buffer), len(stream), most_bytes[index % len(most_bytes)])
        assert count > 0
        buffer[:count] = stream[:count]
        stream, index = stream[count:], index + 1
        frames += [(kind, tag, bytes(payload)) for kind, tag, payload in decoder.frames(count)]
    return frames


@given(
    st.lists(FRAMES, max_size=6),
    st.lists(st.one_of(st.integers(1, 70), st.integers(1000, 1 << 20)), min_size=1, max_size=5),
)
def test_whatever_the_parts_of_the_stream_the_frames_are_the_same(
    described: list[tuple[Kind, Tag, int]], most_bytes: list[int]
) -> None:
    sent = [
        (kind, tag, (b"%d of %d" % (number, size) * (size // 6 + 1))[:size])
        for number, (kind, tag, size) in enumerate(described)
    ]
    stream = b"".join(header(kind, tag, len(payload)) + payload for kind, tag, payload in sent)
    if len(stream) > 50_000:
        most_bytes = [each * 1000 for each in most_bytes]
    assert decoded(stream, most_bytes) == sent


@given(TAGS, st.integers(0, MOST_BULK_BYTES))
def test_what_bulk_announces_comes_back(tag: Tag, size_bytes: int) -> None:
    assert bulk_header(header(Kind.TUPLE, tag, size_bytes)) == (Kind.TUPLE, tag, size_bytes)
    assert bulk_header(header(Kind.PLACED, tag, 0)) == (Kind.PLACED, tag, 0)
    assert bulk_header(header(Kind.WITHDRAWN, tag, 0)) == (Kind.WITHDRAWN, tag, 0)


@pytest.mark.parametrize(
    ("kind", "size_bytes", "words"),
    [
        (Kind.MESSAGE, MOST_MESSAGE_BYTES + 1, f"MESSAGE with {MOST_MESSAGE_BYTES + 1} bytes of payload"),
        (Kind.TUPLE, EAGER_BYTES + 1, f"TUPLE with {EAGER_BYTES + 1} bytes of payload, expected at most"),
        (Kind.READY, 23, "READY with 23 bytes of payload, expected 24"),
        (Kind.WITHDRAW, 1, "WITHDRAW with 1 bytes of payload, expected 0"),
        (Kind.PLACED, 0, "kind 4, which does not exist on the connection for messages"),
    ],
)
def test_frames_that_no_peer_may_send_are_named(kind: Kind, size_bytes: int, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        decoded(header(kind, NO_TAG, size_bytes), [1000])


def test_a_frame_of_no_kind_is_named() -> None:
    with pytest.raises(FrameError, match="kind 255"):
        decoded(b"\xff" * HEADER_BYTES, [1000])


@given(st.binary(min_size=HEADER_BYTES, max_size=200))
def test_garbage_is_refused_or_understood_but_nothing_else(garbage: bytes) -> None:
    with contextlib.suppress(FrameError):
        decoded(garbage, [7])


@pytest.mark.parametrize(
    ("kind", "size_bytes", "words"),
    [
        (Kind.MESSAGE, 5, "kind 1, which does not exist on the connection for bulk"),
        (Kind.TUPLE, MOST_BULK_BYTES + 1, f"TUPLE of {MOST_BULK_BYTES + 1} bytes"),
        (Kind.PLACED, 1, "PLACED of 1 bytes, more than 0"),
    ],
)
def test_what_may_not_come_as_bulk_is_named(kind: Kind, size_bytes: int, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        bulk_header(header(kind, Tag(1, 2, 3, 4), size_bytes))


@pytest.mark.parametrize("tag", [Tag(-1, 0, 0, 0), Tag(2**64, 0, 0, 0), Tag(0, 2**32, 0, 0), Tag(0, 0, 0, 2**32)])
def test_a_tag_that_does_not_fit_is_refused(tag: Tag) -> None:
    with pytest.raises(ValueError, match="expected an execution of 64 bits"):
        header(Kind.TUPLE, tag, 0)


@given(st.builds(Place, *[st.integers(0, 2**64 - 1)] * 3))
def test_places_come_back(place: Place) -> None:
    assert place_of(memoryview(packed_place(place))) == place
