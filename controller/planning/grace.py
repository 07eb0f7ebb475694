"""The time after a start in which rules that were found on switches stay, so that their jobs may come back."""

from controller.clock import Clock


class Grace:
    """The grace period of a controller. It ends when ``end`` is called, once it is due.

    Attributes:
        end_s: When it is due to end; None once it has ended.
    """

    def __init__(self, clock: Clock, length_s: float) -> None:
        self.end_s: float | None = clock.now_s() + length_s
        self._clock = clock

    @property
    def left_s(self) -> float:
        """For how long rules that were found are still kept."""
        return 0.0 if self.end_s is None else max(0.0, self.end_s - self._clock.now_s())

    @property
    def is_due(self) -> bool:
        """Whether it is to end now."""
        return self.end_s is not None and self._clock.now_s() >= self.end_s

    def end(self) -> None:
        """Say that those rules are kept no longer."""
        self.end_s = None
