"""Power state of a switch, and notification of its loss."""

from collections.abc import Callable


class Power:
    """Power of a switch, on at first. Without it a switch has neither entries nor connections."""

    def __init__(self) -> None:
        self.is_on = True
        self._listeners: list[Callable[[], None]] = []

    def turn_on(self) -> None:
        """Restore power."""
        self.is_on = True

    def turn_off(self) -> None:
        """Cut power and call the listeners."""
        self.is_on = False
        for listener in tuple(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` at every loss of power, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
