"""When to decide again although nothing has changed: after the policy has made no Plan, in pauses that grow."""

from controller.clock import Clock

_FIRST_PAUSE_S, _LAST_PAUSE_S = 10.0, 300.0


class Retry:
    """The next attempt after a decision that has failed.

    A policy may have failed for what passes, as one that took too long on a busy machine.

    Attributes:
        due_s: When to decide again; None where the last decision has not failed.
    """

    def __init__(self, clock: Clock) -> None:
        self.due_s: float | None = None
        self._clock = clock
        self._pause_s = _FIRST_PAUSE_S

    @property
    def is_due(self) -> bool:
        """Whether to decide again now."""
        return self.due_s is not None and self._clock.now_s() >= self.due_s

    def fail(self) -> None:
        """Note that a decision has failed."""
        self.due_s = self._clock.now_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)

    def succeed(self) -> None:
        """Note that one has not."""
        self.due_s, self._pause_s = None, _FIRST_PAUSE_S
