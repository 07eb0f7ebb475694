"""Why a step's gradients are sent as they are, in numbers and in words."""

from dataclasses import dataclass
from enum import StrEnum


class RateSource(StrEnum):
    """Where the rate of a decision comes from."""

    NOTHING = "not known yet"
    MEASURED = "measured"
    CONTROLLER = "the controller's"
    PROBING = "measured, probing for more"


class Outcome(StrEnum):
    """What was decided."""

    START = "The network is not known yet"
    UNCHANGED = "There were no measurements of all ranks to decide from, so nothing changes"
    DENSE = "Dense fits"
    COMPRESSED = "Dense does not fit"
    NOTHING_FITS = "Nothing fits, so what is sent is near the fastest"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why.

    Attributes:
        outcome: What was decided.
        rate_source: Where ``rate_bps`` comes from.
        rate_bps: What a rank can send, in bits per second.
        hop_s: Latency of a hop.
        slack_s: What the controller leaves after the backward pass.
        deadline_s: When all sums should be there, from the begin of the backward pass.
        finish_s: When they will be, by the forecast.
        dense_bytes: What a rank sends of all buckets as plain DDP does.
        fitting_bytes: What the rate carries from the first bucket's being ready to the deadline.
        sent_bytes: What a rank sends as decided.
        ratio: Share of all elements that are sent, with the remainder.
        remainder_bytes: What it sends of the remainder, before the first bucket.
        low_rank_buckets: How many buckets are sent as low rank.
    """

    outcome: Outcome
    rate_source: RateSource = RateSource.NOTHING
    rate_bps: float = 0
    hop_s: float = 0
    slack_s: float = 0
    deadline_s: float = 0
    finish_s: float = 0
    dense_bytes: float = 0
    fitting_bytes: float = 0
    sent_bytes: float = 0
    ratio: float = 0
    remainder_bytes: float = 0
    low_rank_buckets: int = 0

    def __str__(self) -> str:
        if not self.rate_bps:
            return f"{self.outcome}; ratio {self.ratio:.4g}."
        return (
            f"{self.outcome}: {self.dense_bytes / 1e6:.3g} MB dense, {self.fitting_bytes / 1e6:.3g} MB fit, at "
            f"{self.rate_bps / 1e6:.4g} Mbit/s ({self.rate_source}) until {self.deadline_s * 1e3:.4g} ms after the "
            f"backward pass began ({self.slack_s * 1e3:.4g} ms of slack); {self.sent_bytes / 1e6:.3g} MB are sent, "
            f"ratio {self.ratio:.4g}, and end at {self.finish_s * 1e3:.4g} ms.{self._low_rank()}{self._remainder()}"
        )

    def _low_rank(self) -> str:
        if not self.low_rank_buckets:
            return ""
        return f" Sent as low rank: {self.low_rank_buckets} of the buckets."

    def _remainder(self) -> str:
        if not self.remainder_bytes:
            return ""
        return f" Before them, {self.remainder_bytes / 1e6:.3g} MB of what the last bucket left out."
