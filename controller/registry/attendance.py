"""What has come and is not served yet: leases do not end meanwhile, since it may renew them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controller.clock import Clock


class Attendance:
    """Tells until when the controller has served all that came.

    Args:
        clock: The time of leases.
        overdue_s: For how long the event loop has stood still by now: calls that came since are not known yet.

    Example::

        with attendance.call():
            await admission
        for name in registry.expire(attendance.served_until_s()):
            ...
    """

    def __init__(self, clock: Clock, overdue_s: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._overdue_s = overdue_s
        self._came_s: dict[object, float] = {}
        """By call that waits, when it came, the oldest first."""

    @contextmanager
    def call(self) -> Iterator[None]:
        """Have a call wait while the context lasts."""
        key = object()
        self._came_s[key] = self._clock.now_s()
        try:
            yield
        finally:
            del self._came_s[key]

    def served_until_s(self) -> float:
        """All calls that came before this time are served."""
        now_s = self._clock.now_s() - self._overdue_s()
        return min(now_s, next(iter(self._came_s.values()), now_s))
