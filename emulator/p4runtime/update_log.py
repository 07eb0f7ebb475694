"""What a controller has written for a saved pipeline, so that its commit can repeat it."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.errors import resource_exhausted

MAX_UPDATES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class UpdateLog:
    """Updates in order, each carried out successfully once."""

    def __init__(self) -> None:
        self._updates: list[p4r.Update] = []
        self._left_bytes = MAX_BYTES

    def __iter__(self) -> Iterator[p4r.Update]:
        return iter(self._updates)

    def require_room(self, update: p4r.Update) -> None:
        """Raise RequestError, RESOURCE_EXHAUSTED, where there is no room for an update."""
        if len(self._updates) >= MAX_UPDATES or update.ByteSize() > self._left_bytes:
            raise resource_exhausted(
                f"a saved pipeline takes {MAX_UPDATES:,} updates and {MAX_BYTES:,} bytes at most before it is committed"
            )

    def append(self, update: p4r.Update) -> None:
        """Add an update for which there is room."""
        self._updates.append(update)
        self._left_bytes -= update.ByteSize()
