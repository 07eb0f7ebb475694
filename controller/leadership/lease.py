"""The leader's lease: who may write to switches, and until when. Pure: callers pass the time.

Clocks are never compared with one another. The holder counts from when it asked for its last renewal, and a candidate
from when it last saw one, so that the holder stops before the other begins (Gray and Cheriton, "Leases: an efficient
fault-tolerant mechanism for distributed file cache consistency", SOSP 1989, section 2). Only the rates of the clocks
have to agree, within the margin that the holder keeps.
"""

import math
from dataclasses import dataclass, field, replace

_RENEWAL_SHARE = 0.25
"""How often the holder renews the lease, as a share of it."""
_MARGIN_SHARE = 0.25
"""How long before the end of the lease the holder stops writing."""
OBSERVE_SHARE = 0.125
"""How often candidates read the lease."""

_MAX_OBSERVED_INTERVALS = 2
"""The most that counts between two observations: after a jump of the clock, or a stopped process, the rest does not."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The lease as the database has it.

    ``term`` counts take-overs and ``renewals`` the renewals of this term. Another controller may take the lease once
    ``lease_s`` have passed without a renewal; 0: the lease was given back. ``session`` marks the holder's sessions on
    the database, where they are known.
    """

    holder: str
    term: int
    renewals: int
    lease_s: float
    session: str = field(default="", compare=False)


VACANT = LeaseRecord("", 0, 0, 0.0)
"""The lease in a new database."""


@dataclass(frozen=True, slots=True)
class LeaseObserver:
    """A candidate's view of the lease: the record, for how long it has not changed, and when it was read last."""

    record: LeaseRecord
    observed_s: float
    unchanged_s: float = 0.0

    def observe(self, record: LeaseRecord, now_s: float) -> "LeaseObserver":
        """The view after the record was read again, just before ``now_s``."""
        if record != self.record:
            return LeaseObserver(record, now_s)
        longest_s = _MAX_OBSERVED_INTERVALS * OBSERVE_SHARE * record.lease_s
        return LeaseObserver(record, now_s, self.unchanged_s + min(max(0.0, now_s - self.observed_s), longest_s))

    @property
    def may_take(self) -> bool:
        """Whether the lease is free: its holder, if there is one, has let it end."""
        return self.unchanged_s >= self.record.lease_s


@dataclass(frozen=True, slots=True)
class HeldLease:
    """The lease that a controller holds; it asked for the last confirmed renewal at ``confirmed_s``.

    Since ``doubted_s`` the holder has reason to doubt the lease: only a renewal asked for later confirms it again.
    """

    term: int
    lease_s: float
    confirmed_s: float
    doubted_s: float = -math.inf

    @property
    def end_s(self) -> float:
        """When the holder must have stopped; candidates wait longer."""
        return self.confirmed_s + (1 - _MARGIN_SHARE) * self.lease_s

    @property
    def renewal_due_s(self) -> float:
        """When the lease is to be renewed."""
        return self.confirmed_s + _RENEWAL_SHARE * self.lease_s if self.doubted_s < self.confirmed_s else self.doubted_s

    def is_over(self, now_s: float) -> bool:
        """Whether the holder must step down; it must, too, where its clock has gone back."""
        return not self.confirmed_s <= now_s < self.end_s

    def may_write(self, now_s: float) -> bool:
        """Whether no other controller can hold the lease now."""
        return not self.is_over(now_s) and self.doubted_s < self.confirmed_s

    def confirm(self, asked_s: float) -> "HeldLease":
        """The lease after a renewal that was asked for at ``asked_s``."""
        return replace(self, confirmed_s=max(self.confirmed_s, asked_s))

    def doubt(self, now_s: float) -> "HeldLease":
        """The lease after a sign that another controller may hold it."""
        return replace(self, doubted_s=now_s)
