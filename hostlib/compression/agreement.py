"""How all ranks come to decide from identical numbers.

Each rank proposes what it measured of a step. The proposals travel beside the first bucket of the next step, in a small
all-gather that is issued with it, so that every rank then holds all of them and nobody has waited for another round
trip. They are not part of the bucket itself: a longer buffer moves the segments of gloo's ring, and sums would not be
those of plain DDP to the bit.
"""

import binascii
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

VERSION = 2
"""Of the encoding. An encoding starts with it, so zeros, of a rank that proposes nothing, are none."""

MOST_BUCKETS = 0xFFFF

_HEAD = struct.Struct("<BxH")
_SCALARS = struct.Struct("<3fI3f")
_CHECKSUM = struct.Struct("<H")

_LARGEST = 1e30
"""No second, bit per second or count of a training job is above it; fp32 holds it."""


class MalformedProposalError(ValueError):
    """A proposal holds what cannot be, or its bytes are not those that a rank sent."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one rank measured of a step. Buckets are in the order in which the step issued them.

    Where a remainder travelled before the first bucket, there is one more number, the last: in ``network_s`` from its
    issue to its completion, in ``ready_s`` its completion after the begin of the backward pass, 0 if it was earlier,
    and in ``exchange_s`` as of a bucket.

    Attributes:
        network_s: Per bucket, from the rank's issue of its transmission to the completion.
        ready_s: Per bucket, from the begin of the backward pass until its gradients were there.
        exchange_s: Per bucket, how much of ``network_s`` was an exchange, in which each rank sends to all others at
            once; the rest went by ring, or waited.
        compute_s: The step without waiting for the network; encoding is part of it.
        backward_s: The backward pass, likewise.
        step_s: The step as it was.
        retransmissions: Segments that the group's connections sent again.
        round_trip_s: The shortest round trip that they measured; None: unknown.
        rate_bps: What the controller leaves the job, in bits per second; None: no controller.
        slack_s: How long after the backward pass gradients are in time by the controller; None: no controller.

    Raises:
        MalformedProposalError: A number is negative, infinite, too large or NaN, a rate is zero, or the lengths of
            ``network_s``, ``ready_s`` and ``exchange_s`` differ.
    """

    network_s: tuple[float, ...]
    ready_s: tuple[float, ...]
    exchange_s: tuple[float, ...]
    compute_s: float
    backward_s: float
    step_s: float
    retransmissions: int = 0
    round_trip_s: float | None = None
    rate_bps: float | None = None
    slack_s: float | None = None

    def __post_init__(self) -> None:
        lengths = [len(self.network_s), len(self.ready_s), len(self.exchange_s)]
        if len(set(lengths)) != 1 or lengths[0] > MOST_BUCKETS:
            raise MalformedProposalError(
                f"expected as many of network_s, ready_s and exchange_s, at most {MOST_BUCKETS}, got {lengths}"
            )
        for field in fields(self):
            value = getattr(self, field.name)
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None and not 0 <= number <= _LARGEST:
                    raise MalformedProposalError(f"{field.name}: expected a number of 0 or more, got {number!r:.40}")
        if self.rate_bps == 0:
            raise MalformedProposalError("rate_bps: expected more than 0, got 0")

    def to_bytes(self) -> bytes:
        """Return the encoding, ``size_bytes`` of the number of buckets long. Seconds become single precision."""
        count = len(self.ready_s)
        optional = (self.round_trip_s, self.rate_bps, self.slack_s)
        body = (
            _HEAD.pack(VERSION, count)
            + _SCALARS.pack(
                self.compute_s,
                self.backward_s,
                self.step_s,
                min(self.retransmissions, 0xFFFFFFFF),
                *(math.nan if value is None else value for value in optional),
            )
            + struct.pack(f"<{3 * count}f", *self.network_s, *self.ready_s, *self.exchange_s)
        )
        return body + _CHECKSUM.pack(binascii.crc_hqx(body, 0))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Proposal":
        """Return the proposal that ``to_bytes`` encoded.

        Raises:
            MalformedProposalError: It is of another version or length, its checksum is wrong, or a number cannot be.
        """
        if len(data) < size_bytes(0) or data[0] != VERSION:
            raise MalformedProposalError(f"expected a proposal of version {VERSION}, got {data[:1].hex() or 'nothing'}")
        count = _HEAD.unpack_from(data)[1]
        if len(data) != size_bytes(count):
            raise MalformedProposalError(f"expected {size_bytes(count)} bytes for {count} buckets, got {len(data)}")
        body = data[: -_CHECKSUM.size]
        if _CHECKSUM.unpack_from(data, len(body))[0] != binascii.crc_hqx(body, 0):
            raise MalformedProposalError("the checksum is wrong")
        compute_s, backward_s, step_s, retransmissions, *optional = _SCALARS.unpack_from(body, _HEAD.size)
        numbers = struct.unpack_from(f"<{3 * count}f", body, _HEAD.size + _SCALARS.size)
        round_trip_s, rate_bps, slack_s = (None if math.isnan(value) else value for value in optional)
        return cls(
            numbers[:count],
            numbers[count : 2 * count],
            numbers[2 * count :],
            compute_s,
            backward_s,
            step_s,
            retransmissions,
            round_trip_s,
            rate_bps,
            slack_s,
        )


@dataclass(frozen=True, slots=True)
class Agreed:
    """What all ranks' proposals say together: the same numbers on every rank, and each of them possible.

    Attributes:
        network_s: Per bucket, of the rank that issued last, for it waited for no other: the minimum.
        ready_s: Per bucket, of the last rank: the maximum.
        exchange_s: Per bucket, of the rank that began it last: the minimum.
        compute_s: Of the slowest rank.
        backward_s: Likewise.
        step_s: Likewise.
        retransmissions: Of all ranks.
        round_trip_s: The longest; None where no rank knows one.
        rate_bps: The lowest; None where no rank has one of a controller.
        slack_s: The least; None likewise.
        ranks: How many proposals these numbers come from.
    """

    network_s: tuple[float, ...]
    ready_s: tuple[float, ...]
    exchange_s: tuple[float, ...]
    compute_s: float
    backward_s: float
    step_s: float
    retransmissions: int = 0
    round_trip_s: float | None = None
    rate_bps: float | None = None
    slack_s: float | None = None
    ranks: int = 1


def size_bytes(buckets: int) -> int:
    """Return how long the encoding of a proposal is."""
    return _HEAD.size + _SCALARS.size + 12 * buckets + _CHECKSUM.size


def agreed(proposals: Sequence[Proposal | None]) -> Agreed | None:
    """Return what the proposals of all ranks, None where a rank has none, say together.

    Where ranks disagree on the number of buckets, as around DDP's rebuilding of them, there is nothing to decide from:
    None, as without proposals.
    """
    known = [proposal for proposal in proposals if proposal is not None]
    if len({len(proposal.ready_s) for proposal in known}) != 1:
        return None
    return Agreed(
        network_s=tuple(map(min, zip(*(proposal.network_s for proposal in known), strict=True))),
        ready_s=tuple(map(max, zip(*(proposal.ready_s for proposal in known), strict=True))),
        exchange_s=tuple(map(min, zip(*(proposal.exchange_s for proposal in known), strict=True))),
        compute_s=max(proposal.compute_s for proposal in known),
        backward_s=max(proposal.backward_s for proposal in known),
        step_s=max(proposal.step_s for proposal in known),
        retransmissions=sum(proposal.retransmissions for proposal in known),
        round_trip_s=_of_known(max, [proposal.round_trip_s for proposal in known]),
        rate_bps=_of_known(min, [proposal.rate_bps for proposal in known]),
        slack_s=_of_known(min, [proposal.slack_s for proposal in known]),
        ranks=len(known),
    )


def read_proposals(encoded: Sequence[bytes]) -> tuple[list[Proposal | None], int]:
    """Return each rank's proposal, and how many are malformed and so None; zeros alone are none too, and are right."""
    proposals: list[Proposal | None] = []
    malformed = 0
    for data in encoded:
        try:
            proposals.append(Proposal.from_bytes(data) if any(data) else None)
        except MalformedProposalError:
            proposals.append(None)
            malformed += 1
    return proposals, malformed


def _of_known(choose: Callable[[Sequence[float]], float], values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
