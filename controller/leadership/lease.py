"""The lease on a fabric: who may write to its switches, and until when. Pure: every step is told the time.

No clock is compared with another: a holder counts from when it asked for its last renewal, and whoever waits from when
it has last seen one, so that the holder is done before the other begins (Gray and Cheriton, "Leases: an efficient
fault-tolerant mechanism for distributed file cache consistency", SOSP 1989, section 2). Only the rates of their clocks
have to agree, within the margin that the holder keeps.
"""

import math
from dataclasses import dataclass, replace

_RENEWAL_SHARE = 0.25
_MARGIN_SHARE = 0.25
LOOK_SHARE = 0.125
"""Of a lease: how often it is renewed, how long before its end its holder stops writing, how often others look."""

_LONGEST_LOOKS = 2
"""A clock that jumps, or a controller that was stopped, has not watched: between two looks no more counts than this."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The lease as the database has it.

    ``term`` counts take-overs and ``renewals`` those of this term; others leave the holder alone for ``lease_s`` after
    the last one. 0: the lease was given back.
    """

    holder: str
    term: int
    renewals: int
    lease_s: float


VACANT = LeaseRecord("", 0, 0, 0.0)
"""What a new database has."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a controller that waits for the lease has seen: a record, for how long it has been so, and the last look."""

    record: LeaseRecord
    looked_s: float
    unchanged_s: float = 0.0

    def look(self, record: LeaseRecord, now_s: float) -> "Watch":
        """The record as it was read just before ``now_s``."""
        if record != self.record:
            return Watch(record, now_s)
        longest_s = _LONGEST_LOOKS * LOOK_SHARE * record.lease_s
        return Watch(record, now_s, self.unchanged_s + min(max(0.0, now_s - self.looked_s), longest_s))

    @property
    def may_take(self) -> bool:
        """Whether the holder, if there is one, has let the lease end."""
        return self.unchanged_s >= self.record.lease_s


@dataclass(frozen=True, slots=True)
class Hold:
    """The lease in a controller's hands: the renewal confirmed last was asked for at ``confirmed_s``.

    Since ``doubted_s`` something speaks against it: only a renewal that is asked for later shows that it still holds.
    """

    term: int
    lease_s: float
    confirmed_s: float
    doubted_s: float = -math.inf

    @property
    def end_s(self) -> float:
        """When the holder has to have stopped, though others wait longer."""
        return self.confirmed_s + (1 - _MARGIN_SHARE) * self.lease_s

    @property
    def renewal_due_s(self) -> float:
        """When the database is to be asked again."""
        return self.confirmed_s + _RENEWAL_SHARE * self.lease_s if self.doubted_s < self.confirmed_s else self.doubted_s

    def is_over(self, now_s: float) -> bool:
        """Whether the holder is to step back; so it is where its clock goes back."""
        return not self.confirmed_s <= now_s < self.end_s

    def may_write(self, now_s: float) -> bool:
        """Whether nobody else can hold the lease now."""
        return not self.is_over(now_s) and self.doubted_s < self.confirmed_s

    def confirm(self, asked_s: float) -> "Hold":
        """A renewal that was asked for at ``asked_s`` has succeeded."""
        return replace(self, confirmed_s=max(self.confirmed_s, asked_s))

    def doubt(self, now_s: float) -> "Hold":
        """Something has shown that another may hold it."""
        return replace(self, doubted_s=now_s)
