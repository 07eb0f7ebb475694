"""What has been measured of a job that tells nothing of itself, and whether it still holds."""

from dataclasses import dataclass

from controller.profiling.rhythm import Rhythm
from controller.profiling.shares import PathShare
from policies.profile import Profile

FORWARD_SHARE = 1 / 3
"""Of an iteration's computation comes before its communication: backward passes take twice as long."""

_WHOLE = 0.9
"""Of an iteration: a gap and a transfer that make so much of it are all that there is."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A job's rhythm, the time that its bottleneck link needs for an iteration's bytes, and the ways these take.

    ``at_s`` is when it was measured.
    """

    at_s: float
    rhythm: Rhythm
    transfer_s: float
    shares: tuple[PathShare, ...]

    def profile(self, gpus: int) -> Profile:
        """The iteration as Crux sees one (section 4.2), on all GPUs that the job has.

        Switches see when a job sends, not when it computes. Where it sends all the time but for one gap, it waits for
        that, and the gap is the computation before communication: FORWARD_SHARE of the whole, and this at most an
        iteration. Where it sends here and there, it computes all the time.
        """
        period_s, gap_s = self.rhythm.period_s, self.rhythm.gap_s
        if gap_s + self.transfer_s < _WHOLE * period_s:
            return Profile(period_s, min(FORWARD_SHARE, gap_s / period_s), period_s * gpus)
        before_s = max(0.0, period_s - self.transfer_s)
        compute_s = min(period_s, before_s / FORWARD_SHARE)
        return Profile(compute_s, FORWARD_SHARE, compute_s * gpus)


def has_drifted(before: Rhythm, now: Rhythm, threshold: float) -> bool:
    """Whether a job does something else than when it was measured, by more than ``threshold``, a share.

    Other jobs can make its iterations longer and its gaps shorter. They can change neither what it sends, nor make its
    iterations shorter or its gaps longer.
    """
    return (
        abs(now.iteration_bytes / before.iteration_bytes - 1) > threshold
        or now.period_s < before.period_s * (1 - threshold)
        or now.gap_s > before.gap_s + threshold * before.period_s
    )
