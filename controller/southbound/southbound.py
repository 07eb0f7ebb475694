"""What the planner asks of whatever speaks to the switches."""

from typing import Protocol

from controller.southbound.rules import RulesBySwitch


class SouthboundError(Exception):
    """A switch refused what it was told to hold; the message names it."""


class Southbound(Protocol):
    """The switches of a fabric, as a place that holds flow rules."""

    async def write(self, rules: RulesBySwitch) -> None:
        """Have every switch hold these rules and no others; returns when all that are connected have acknowledged.

        A switch that is away is caught up when it is back. Raises SouthboundError where a switch refuses.
        """

    async def caught_up(self) -> None:
        """Return once every switch is connected and has acknowledged what was last written."""
