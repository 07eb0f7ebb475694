"""Cutting bytes into messages: however they are split, and whatever they are."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.channel_errors import MisbehaviourError
from controller.southbound.openflow.framing import Framer

_VERSION = 6


def _framer(version: int | None = _VERSION) -> Framer:
    framer = Framer()
    if version is not None:
        framer.expect(version)
    return framer


def _plain(octets: bytes) -> list[bytes]:
    """The messages that bytes begin with, cut one by one."""
    found = []
    while len(octets) >= 8 and len(octets) >= (length := int.from_bytes(octets[2:4], "big")):
        assert octets[0] == _VERSION
        assert length >= 8
        found.append(octets[:length])
        octets = octets[length:]
    return found


_MESSAGES = st.lists(
    st.builds(
        lambda kind, xid, body: struct.pack("!BBHI", _VERSION, kind, 8 + len(body), xid) + body,
        st.integers(0, 255),
        st.integers(0, (1 << 32) - 1),
        st.binary(max_size=60) | st.just(bytes(65_527)),
    ),
    max_size=8,
)


@given(_MESSAGES, st.binary(max_size=7), st.lists(st.integers(0, 600), max_size=12), st.integers(1, 4))
def test_messages_come_whole_and_in_order_however_they_are_split(
    messages: list[bytes], rest: bytes, cuts: list[int], most: int
) -> None:
    octets = b"".join(messages) + rest
    framer, taken = _framer(), []
    for start, end in pairwise([0, *sorted(cuts), len(octets)]):
        framer.feed(octets[start:end])
        while found := framer.take(most) if start < len(octets) else []:
            assert len(found) <= most
            taken += found
    assert taken == messages == _plain(octets)[: len(messages)]


@given(st.binary(max_size=200), st.sampled_from([None, 4, 6]))
def test_any_bytes_are_messages_or_refused(octets: bytes, version: int | None) -> None:
    framer = _framer(version)
    framer.feed(octets)
    try:
        taken = framer.take()
    except MisbehaviourError:
        return
    assert octets.startswith(b"".join(taken))
    assert all(len(each) == int.from_bytes(each[2:4], "big") for each in taken)
    assert all(each[0] == version or (version is None and each[1] in (0, 1)) for each in taken)


@given(st.integers(0, 7), st.integers(0, 255))
def test_a_message_shorter_than_its_header_is_refused(length: int, kind: int) -> None:
    framer = _framer()
    framer.feed(struct.pack("!BBHI", _VERSION, kind, length, 0))
    with pytest.raises(MisbehaviourError, match=f"says it has {length} bytes"):
        framer.take()


def test_greetings_are_taken_before_the_version_is_known_and_that_version_alone_afterwards() -> None:
    framer = _framer(None)
    hello, reply = struct.pack("!BBHI", 9, 0, 8, 1), struct.pack("!BBHI", _VERSION, 6, 8, 2)
    framer.feed(hello + reply + hello)
    assert framer.take(most=1) == [hello]
    framer.expect(_VERSION)
    assert framer.take(most=1) == [reply]
    with pytest.raises(MisbehaviourError, match="a message of version 9 where 6 was agreed"):
        framer.take()
