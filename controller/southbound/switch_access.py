"""Access to one connected switch: what reads and writes its entries, and what goes wrong by that."""

from collections.abc import Sequence
from typing import Protocol

from controller.errors import DaemonError
from controller.southbound.states import EntryKey, EntryT, State, Update


class SwitchAwayError(DaemonError):
    """The connection to the switch is lost."""


class SwitchRefusalError(DaemonError):
    """The switch refused an update; the message tells which."""


class Access(Protocol[EntryT]):
    """Read and write access to one connected switch.

    Both methods raise SwitchAwayError and SwitchRefusalError.
    """

    async def read(self, expected: State[EntryT]) -> dict[EntryKey, EntryT]:
        """Read the controller's own entries; those that do the same as an expected one are that very object."""

    async def write(self, updates: Sequence[Update[EntryT]]) -> None:
        """Write updates in one request."""
