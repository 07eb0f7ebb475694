"""Start shifts: a job delays its iterations by the shift in its directives, and again where they have drifted.

Source: the agents of *CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters*, NSDI 2024.
"""

import math

_TOLERATED_DRIFT = 0.05
"""Share of an iteration."""


class StartShift:
    """Computes before every iteration how long to wait, so that iterations start when the directives want them.

    The beats of the rhythm are one shift after ``arrival_s``, when the job registered, and whole iterations later. The
    first iteration under a new shift waits for its beat, later ones only if they are more than 5 % of an iteration off.
    """

    def __init__(self, arrival_s: float) -> None:
        self._arrival_s = arrival_s
        self._shift_s: float | None = None

    def delay_s(self, now_s: float, shift_s: float | None, iteration_s: float) -> float:
        """Return the seconds to wait before an iteration that could begin now; 0 without a shift.

        ``iteration_s`` is the isolated iteration time. Raises ValueError if it is not positive and finite.
        """
        if not 0 < iteration_s < math.inf:
            raise ValueError(f"iteration_s must be positive and finite, not {iteration_s}")
        is_new, self._shift_s = shift_s != self._shift_s, shift_s
        if shift_s is None:
            return 0.0
        late_s = math.remainder(now_s - self._arrival_s - shift_s, iteration_s)
        if late_s > _TOLERATED_DRIFT * iteration_s:
            return iteration_s - late_s
        if is_new or late_s < -_TOLERATED_DRIFT * iteration_s:
            return max(0.0, -late_s)
        return 0.0
