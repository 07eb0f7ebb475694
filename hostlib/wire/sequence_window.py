"""Sequence window: classifies numbered packets as new, late or duplicate, and counts losses."""

from enum import StrEnum

SIZE = 256
"""A number may be this far behind the newest."""

_ONES = (1 << SIZE) - 1

MAX_JUMP = SIZE // 2
"""A number further ahead of the newest is rejected; a wrong one that is not leaves the right ones in the window."""


class Arrival(StrEnum):
    """Classification of a packet by its number."""

    NEW = "new"
    LATE = "late"
    DUPLICATE = "duplicate"
    TOO_OLD = "too old to tell"
    JUMP = "far ahead of all before"
    OTHER_SESSION = "of another session than the one in force"
    CLOCK = "sent at another time than its sender's clock says"

    @property
    def is_new(self) -> bool:
        """Whether the packet was not there before."""
        return self is _NEW or self is _LATE


# Looking up a member of an enum takes long, and this is done for every packet.
_NEW, _LATE = Arrival.NEW, Arrival.LATE


class SequenceWindow:
    """Remembers the last 256 numbers of an increasing sequence, like the replay window of IPsec (RFC 4303, 3.4.3).

    ``received`` counts new numbers, ``late`` those of them behind a higher number, ``duplicates`` all others.
    """

    __slots__ = ("_bits", "_first", "_newest", "duplicates", "late", "received")

    def __init__(self) -> None:
        self.received = self.late = self.duplicates = 0
        self._first = self._newest = -1
        self._bits = 0
        """Bit i: the number i below the newest has arrived."""

    @property
    def missing(self) -> int:
        """Numbers since the first that have not arrived."""
        return self._newest - self._first + 1 - self.received if self.received else 0

    @property
    def recent_loss(self) -> float:
        """Share of the last 256 numbers, or of fewer at the start, that have not arrived."""
        span = min(SIZE, self._newest - self._first + 1)
        return 1 - self._bits.bit_count() / span if self.received else 0.0

    @property
    def newest(self) -> int:
        """The highest number, -1 before the first."""
        return self._newest

    def is_unseen(self, number: int) -> bool:
        """Return whether a number has certainly not been recorded."""
        behind = self._newest - number
        return behind < 0 or (behind < SIZE and not self._bits >> behind & 1)

    def skip_to(self, number: int) -> None:
        """Record a number above the newest, however far; what lies between is missing."""
        self._newest, self._bits = number, 1
        self.received += 1

    def note(self, number: int) -> Arrival:
        """Record the arrival of a number."""
        if not self.received:
            self._first = self._newest = number
            self._bits = self.received = 1
            return _NEW
        ahead = number - self._newest
        if ahead > MAX_JUMP:
            return Arrival.JUMP
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & _ONES
            self._newest = number
            self.received += 1
            return _NEW
        if -ahead >= SIZE:
            self.duplicates += 1
            return Arrival.TOO_OLD
        bit = 1 << -ahead
        if self._bits & bit:
            self.duplicates += 1
            return Arrival.DUPLICATE
        self._bits |= bit
        self._first = min(self._first, number)
        self.received += 1
        self.late += 1
        return _LATE
