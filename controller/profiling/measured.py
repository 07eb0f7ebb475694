"""Keep what profiling has measured of jobs, and tell when it no longer holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.profiling.rhythm import Rhythm
from controller.profiling.shares import PathShare
from policies.job import Profile

FORWARD_SHARE = 1 / 3
"""Share of an iteration's computation before its communication: backward passes take twice as long as forward ones."""

_WHOLE = 0.9
"""A gap and a transfer that take this share of an iteration are all that the iteration consists of."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurement of a job at ``at_s``.

    ``transfer_s`` is the time that its bottleneck link needs for an iteration's bytes, ``shares`` the paths they take.
    """

    at_s: float
    rhythm: Rhythm
    transfer_s: float
    shares: tuple[PathShare, ...]

    def profile(self, gpus: int) -> Profile:
        """Return the iteration as Crux sees it (section 4.2), on all GPUs of the job.

        Switches see when a job sends, not when it computes. A job that sends all the time but for one gap waits for
        its communication: then the gap is the computation before communication, FORWARD_SHARE of the whole, which is
        at most an iteration. A job that sends here and there computes all the time.
        """
        period_s, gap_s = self.rhythm.period_s, self.rhythm.gap_s
        if gap_s + self.transfer_s < _WHOLE * period_s:
            return Profile(period_s, min(FORWARD_SHARE, gap_s / period_s), period_s * gpus)
        before_s = max(0.0, period_s - self.transfer_s)
        compute_s = min(period_s, before_s / FORWARD_SHARE)
        return Profile(compute_s, FORWARD_SHARE, compute_s * gpus)


class ProfilingResults:
    """The last measurement of each job, and ``profiled``, the job that has a level of its own to be measured."""

    def __init__(self) -> None:
        self.profiled: str | None = None
        self._measured: dict[str, Measured] = {}

    def measured(self, job: str) -> Measured | None:
        """Return what was measured of a job, None if nothing was yet."""
        return self._measured.get(job)

    @property
    def all(self) -> Mapping[str, Measured]:
        """What was measured, by job."""
        return MappingProxyType(self._measured)

    def record(self, job: str, measured: Measured) -> None:
        """Record the measurement of a job."""
        self._measured[job] = measured

    def forget(self, job: str) -> None:
        """Forget a job that has left or reports its profile itself."""
        self._measured.pop(job, None)


def has_drifted(before: Rhythm, now: Rhythm, threshold: float) -> bool:
    """Return whether a job behaves differently than when it was measured, by more than ``threshold``, a share.

    Other jobs can make its iterations longer and its gaps shorter. They can neither change what it sends, nor make its
    iterations shorter or its gaps longer.
    """
    return (
        abs(now.iteration_bytes / before.iteration_bytes - 1) > threshold
        or now.period_s < before.period_s * (1 - threshold)
        or now.gap_s > before.gap_s + threshold * before.period_s
    )
