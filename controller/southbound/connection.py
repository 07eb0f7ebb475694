"""The connection to one switch, and how far the switch has come over it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic

from controller.notice import either
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.states import EntryT
from controller.southbound.switch_access import Access, SwitchAwayError, SwitchRefusalError

OnChange = Callable[[], None]
"""Called where the condition of a switch may be another one."""


def nothing_waits() -> None:
    """An OnChange for which nobody waits."""


class Connection(Generic[EntryT]):
    """Knows whether a switch is connected, has acknowledged all that it is to hold, refuses, or is lost to another one.

    Attributes:
        access: Access to the switch; None while it is away.
        problem: What is wrong; empty where nothing is.
    """

    def __init__(self, switch: str, on_change: OnChange = nothing_waits) -> None:
        self.access: Access[EntryT] | None = None
        self.problem = ""
        self._switch = switch
        self._on_change = on_change
        self._caught_up = asyncio.Event()
        self._lost = asyncio.Event()
        self._away = asyncio.Event()
        self._away.set()

    @property
    def condition(self) -> SwitchCondition:
        """The state of the switch as the controller sees it."""
        if self._lost.is_set():
            return SwitchCondition.LOST
        if self.access is None:
            return SwitchCondition.AWAY
        if self.problem:
            return SwitchCondition.REFUSES
        return SwitchCondition.CAUGHT_UP if self.is_caught_up else SwitchCondition.BEHIND

    @property
    def is_caught_up(self) -> bool:
        """Whether the switch is known to hold all that it is to hold."""
        return self._caught_up.is_set()

    def open(self, access: Access[EntryT]) -> None:
        """Handle a new connection."""
        self.access, self.problem = access, ""
        self._lost.clear()
        self._away.clear()

    def close(self) -> None:
        """Handle the loss of the connection."""
        self.access, self.problem = None, ""
        self._lost.clear()
        self._caught_up.clear()
        self._away.set()
        self._on_change()

    def drop(self, access: Access[EntryT]) -> None:
        """Handle the loss of this connection, unless there is another one by now."""
        if self.access is access:
            self.close()

    def lose(self, problem: str) -> None:
        """Handle the loss of the switch to another controller."""
        self.close()
        self.problem = problem
        self._lost.set()
        self._on_change()

    def fall_behind(self) -> None:
        """Note that the switch is to hold something else from now on."""
        self._caught_up.clear()

    def refusal(self, refusal: SwitchRefusalError) -> SouthboundError:
        """Return the refusal as an error that names the switch."""
        return SouthboundError(f"switch {self._switch!r}: {refusal}")

    async def attempt(self, access: Access[EntryT], work: Coroutine[Any, Any, None]) -> None:
        """Do work that leaves the switch caught up, unless it fails.

        Raises:
            SouthboundError: The switch refuses.
        """
        try:
            await work
        except SwitchAwayError:
            self.drop(access)
        except SwitchRefusalError as refusal:
            self.problem = str(refusal)
            self._on_change()
            raise self.refusal(refusal) from refusal
        else:
            if self.access is access:
                self.problem = ""
                self._caught_up.set()
                self._on_change()

    async def caught_up(self) -> None:
        """Wait until the switch is connected and has acknowledged all that it is to hold.

        Raises:
            SouthboundError: Another controller has taken over the switch.
        """
        await either(self._caught_up, self._lost)
        if self._lost.is_set():
            raise SouthboundError(f"switch {self._switch!r}: {self.problem}")

    async def away(self) -> None:
        """Wait until the switch is not connected."""
        await self._away.wait()
