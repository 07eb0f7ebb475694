"""The start shift of a job's directives, applied by the job: once, and again where its iterations have drifted."""

import math

_TOLERATED_DRIFT = 0.05
"""As a share of an iteration."""


class StartShift:
    """Says before every iteration how long to wait, so that iterations begin where the directives want them.

    The first one after a new shift begins that much later, and sets the rhythm of those that follow. One that begins
    more than 5 % of an iteration off that rhythm waits for its next beat.
    """

    def __init__(self) -> None:
        self._shift_s: float | None = None
        self._beat_s = 0.0

    def delay_s(self, now_s: float, shift_s: float, iteration_s: float) -> float:
        """Seconds to wait before an iteration that could begin now; ``iteration_s`` is how long one takes alone.

        Raises ValueError where that is not positive.
        """
        if not 0 < iteration_s < math.inf:
            raise ValueError(f"iteration_s must be positive and finite, not {iteration_s}")
        if shift_s != self._shift_s:
            self._shift_s, self._beat_s = shift_s, now_s + shift_s
            return shift_s
        drift_s = math.remainder(now_s - self._beat_s, iteration_s)
        if abs(drift_s) <= _TOLERATED_DRIFT * iteration_s:
            return 0.0
        return -drift_s if drift_s < 0 else iteration_s - drift_s
