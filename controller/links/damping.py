"""Damp flapping cables: hold one that fails again and again out of use (RFC 2439, section 4)."""

import math
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from topologies.bounds import at_least

_Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), at_least(1e-6)]

_TIMER_DIGITS = 6
"""Holds end at whole microseconds, which a clock of picoseconds represents exactly."""


class Damping(BaseModel):
    """The parameters of flap damping, RFC 2439's figure of merit.

    Every fall of a cable adds 1 to its penalty, which halves every ``half_life_s``. A fall that takes the penalty above
    ``cutoff`` holds the cable, up or down, until the penalty has decayed to ``reuse``, at most ``longest_hold_s``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    half_life_s: _Positive = 15.0
    cutoff: _Positive = 1.5
    reuse: _Positive = 0.75
    longest_hold_s: _Positive = 60.0

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.reuse >= self.cutoff:
            raise ValueError(f"damping: reuse must be less than cutoff, {self.reuse} is not less than {self.cutoff}")
        return self

    @property
    def ceiling(self) -> float:
        """The largest penalty: the one that decays to ``reuse`` in ``longest_hold_s``."""
        halvings = self.longest_hold_s / self.half_life_s
        return self.reuse * 2.0**halvings if halvings < math.log2(float(1 << 52)) else math.inf


@dataclass(frozen=True, slots=True)
class FlapHistory:
    """The history of a cable: its penalty at the last fall, how often it fell, and until when it is held."""

    penalty: float = 0.0
    fell_s: float = -math.inf
    falls: int = 0
    held_until_s: float = -math.inf

    def fall(self, now_s: float, damping: Damping | None) -> "FlapHistory":
        """Return the history after a fall; without damping the cable is never held."""
        if damping is None:
            return FlapHistory(fell_s=now_s, falls=self.falls + 1)
        penalty = min(self._decayed(now_s, damping) + 1, damping.ceiling)
        held_until_s = self.held_until_s
        if penalty > damping.cutoff or self.is_held(now_s):
            hold_s = min(damping.half_life_s * math.log2(penalty / damping.reuse), damping.longest_hold_s)
            held_until_s = max(held_until_s, round(now_s + hold_s, _TIMER_DIGITS))
        return FlapHistory(penalty, now_s, self.falls + 1, held_until_s)

    def outage(self, now_s: float, damping: Damping | None) -> "FlapHistory":
        """Return the history after the cable went out of use in another way, for which there is no penalty."""
        penalty = 0.0 if damping is None else self._decayed(now_s, damping)
        return FlapHistory(penalty, now_s, self.falls + 1, self.held_until_s)

    def _decayed(self, now_s: float, damping: Damping) -> float:
        return self.penalty * math.exp2((self.fell_s - now_s) / damping.half_life_s)

    def is_held(self, now_s: float) -> bool:
        """Return whether the cable must not be used, even if it is up."""
        return now_s < self.held_until_s
