"""What Trainyard's controller leaves a job that compresses."""

from dataclasses import dataclass

from hostlib import checks


@dataclass(frozen=True, slots=True)
class Direction:
    """What Trainyard's controller leaves the job; None: there is no controller, or it has not said.

    Raises:
        ValueError: A number is negative or not finite, or the rate is 0.
    """

    rate_bps: float | None = None
    slack_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("rate_bps", self.rate_bps), ("slack_s", self.slack_s)):
            if value is not None:
                checks.number(name, value)
        if self.rate_bps == 0:
            raise ValueError("rate_bps: expected more than 0, got 0")
