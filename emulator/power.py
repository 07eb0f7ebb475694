"""Whether a switch has power, and who is told when it loses it."""

from collections.abc import Callable


class Power:
    """On at first. Without it a switch has neither entries nor connections."""

    def __init__(self) -> None:
        self.is_on = True
        self._listeners: list[Callable[[], None]] = []

    def turn_on(self) -> None:
        """Give it back."""
        self.is_on = True

    def turn_off(self) -> None:
        """Take it away, and tell who listens."""
        self.is_on = False
        for listener in tuple(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Tell ``listener`` whenever power is lost, until what is returned is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
