"""When a job under NetSense tells the controller what it sends: without flapping."""

TELLS_EVERY_S = 5.0
"""A Plan follows from what is told, so it is told at most so often."""
LEAST_CHANGE = 0.1
"""A share is told anew where it has become so much more or less, relative to what was told."""


class Telling:
    """Decides when a share of gradients is told: the first at once, later ones where they have changed enough.

    The caller asks ``is_due``, and has ``update`` judge the share since it last was. Times are of any clock that never
    jumps.
    """

    def __init__(self) -> None:
        self._told: float | None = None
        self._judged_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether a share may be told."""
        return self._told is None or now_s - self._judged_s >= TELLS_EVERY_S

    def update(self, now_s: float, share: float) -> bool:
        """Return whether a share is to be told now, which it then is."""
        if not self.is_due(now_s):
            return False
        self._judged_s = now_s
        if self._told is not None and abs(share - self._told) <= LEAST_CHANGE * self._told:
            return False
        self._told = share
        return True
