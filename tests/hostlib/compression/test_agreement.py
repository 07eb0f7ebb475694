"""Proposals survive their bytes, nonsense does not, and what ranks agree on is exact."""

import binascii
import math
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.agreement import (
    Agreed,
    MalformedProposalError,
    Proposal,
    agreed,
    read_proposals,
    size_bytes,
)

SECONDS = st.floats(0, 1e4, width=32)

PROPOSALS = st.integers(0, 5).flatmap(
    lambda buckets: st.builds(
        Proposal,
        network_s=st.tuples(*[SECONDS] * buckets),
        ready_s=st.tuples(*[SECONDS] * buckets),
        exchange_s=st.tuples(*[SECONDS] * buckets),
        compute_s=SECONDS,
        backward_s=SECONDS,
        step_s=SECONDS,
        retransmissions=st.integers(0, 2**32 - 1),
        round_trip_s=st.none() | SECONDS,
        rate_bps=st.none() | st.floats(1, 2.0**40, width=32),
        slack_s=st.none() | SECONDS,
    )
)

ONE = Proposal((0.5, 0.25), (0.125, 0.5), (0.25, 0.0), 1.0, 0.75, 1.25, 3, 0.0625, 1e9, 0.0)
OTHER = Proposal((0.25, 0.5), (0.25, 0.375), (0.125, 0.0), 0.5, 1.0, 1.5, 4, 0.125, None, 2.0)


@given(PROPOSALS)
def test_a_proposal_survives_its_bytes(proposal: Proposal) -> None:
    encoded = proposal.to_bytes()
    assert len(encoded) == size_bytes(len(proposal.ready_s))
    assert Proposal.from_bytes(encoded) == proposal


@given(PROPOSALS, st.data())
def test_a_changed_byte_is_noticed(proposal: Proposal, data: st.DataObject) -> None:
    encoded = bytearray(proposal.to_bytes())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MalformedProposalError):
        Proposal.from_bytes(bytes(encoded))


@pytest.mark.parametrize(
    "data", [b"", b"\x02", bytes(size_bytes(0)), b"\x03" + ONE.to_bytes()[1:], ONE.to_bytes()[:-1]]
)
def test_what_is_no_proposal_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedProposalError, match="expected"):
        Proposal.from_bytes(data)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, 1e31])
@pytest.mark.parametrize(
    "field",
    [
        "network_s",
        "ready_s",
        "exchange_s",
        "compute_s",
        "backward_s",
        "step_s",
        "round_trip_s",
        "rate_bps",
        "slack_s",
    ],
)
def test_no_proposal_holds_what_cannot_be(field: str, value: float) -> None:
    with pytest.raises(MalformedProposalError, match=field):
        replace(ONE, **{field: (0.5, value) if field in ("network_s", "ready_s", "exchange_s") else value})


def test_a_rate_of_zero_and_uneven_buckets_are_refused() -> None:
    with pytest.raises(MalformedProposalError, match="rate_bps"):
        replace(ONE, rate_bps=0.0)
    for field in ("network_s", "ready_s", "exchange_s"):
        with pytest.raises(MalformedProposalError, match=r"network_s, ready_s and exchange_s"):
            replace(ONE, **{field: (1.0,)})


def test_nonsense_behind_a_right_checksum_is_refused() -> None:
    """A rank whose library differs, or is broken, computes the checksum of what it says."""
    encoded = bytearray(ONE.to_bytes())
    struct.pack_into("<f", encoded, 4, math.inf)  # compute_s
    struct.pack_into("<H", encoded, len(encoded) - 2, binascii.crc_hqx(bytes(encoded[:-2]), 0))
    with pytest.raises(MalformedProposalError, match="compute_s"):
        Proposal.from_bytes(bytes(encoded))


def test_what_two_ranks_agree_on() -> None:
    assert agreed([ONE, None, OTHER]) == Agreed(
        network_s=(0.25, 0.25),
        ready_s=(0.25, 0.5),
        exchange_s=(0.125, 0.0),
        compute_s=1.0,
        backward_s=1.0,
        step_s=1.5,
        retransmissions=7,
        round_trip_s=0.125,
        rate_bps=1e9,
        slack_s=0.0,
        ranks=2,
    )


def test_there_is_nothing_to_agree_on_without_proposals_or_with_other_buckets() -> None:
    assert agreed([]) is None
    assert agreed([None, None]) is None
    assert agreed([ONE, Proposal((1.0,), (1.0,), (0.0,), 1, 1, 1)]) is None


def test_a_corrupt_proposal_is_left_out_and_counted() -> None:
    corrupt = bytearray(OTHER.to_bytes())
    corrupt[7] ^= 1
    assert read_proposals([ONE.to_bytes(), bytes(corrupt), bytes(size_bytes(2))]) == ([ONE, None, None], 1)
