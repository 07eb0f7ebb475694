"""What an arrangement is worth beside others."""

from collections.abc import Iterable
from typing import NamedTuple


class Score(NamedTuple):
    """How good an arrangement is; the greater of two is the better one.

    ``margin`` is 0 where every job is as fast as it must be, else below 0 by how far slowdowns are beyond the largest
    allowed, together. ``worth`` is computation per second, less what counts twice of it (``Judge.score``).
    """

    margin: float
    worth: float

    def is_better_than(self, other: "Score", least_gain: float) -> bool:
        """Whether it is by more than this part. Where jobs are slowed down too much, only by how much counts."""
        if self.margin or other.margin:
            return self.margin * (1 + least_gain) > other.margin
        return self.worth > other.worth + least_gain * abs(other.worth)


def together(scores: Iterable[Score]) -> Score:
    """That of several arrangements beside one another."""
    margins, worths = zip(*scores, strict=True)
    return Score(sum(margins), sum(worths))
