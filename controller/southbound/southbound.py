"""What the planner asks of whatever speaks to the switches."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controller.rules.flow_rules import RulesBySwitch
from topologies.routing import Routing


class SouthboundError(Exception):
    """A switch refused what it was told to hold; the message names it."""


class SwitchCondition(StrEnum):
    """How the controller stands with a switch."""

    AWAY = "away"
    BEHIND = "behind"
    CAUGHT_UP = "caught up"
    REFUSES = "refuses"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """A switch, where it answers, its condition, and what is wrong where something is.

    ``num_rules`` counts the flow rules that it is known to hold, None where that is not known.
    """

    name: str
    address: str
    device_id: int
    condition: SwitchCondition
    problem: str
    num_rules: int | None


class Southbound(Protocol):
    """The switches of a fabric, as a place that holds flow rules."""

    async def write(self, rules: RulesBySwitch) -> None:
        """Have every switch hold these rules; returns when all that are connected have acknowledged.

        Rules of before are deleted, but those that switches held at the start only after ``forget_found``. A switch
        that is away is caught up when it is back. Raises SouthboundError where a switch refuses.
        """

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """The same as ``write``, and then have every switch route by this what no rule leads. Raises as it does."""

    async def forget_found(self) -> None:
        """Have every switch hold no other rules than those written. Raises SouthboundError where a switch refuses."""

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """Return once every switch is connected and has acknowledged what was last written, but for those ``down``.

        Of those it waits until their connections have ended. Raises SouthboundError where a switch is lost to another
        controller.
        """

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """How the controller stands with every switch."""
