"""Define what the planner needs from a protocol that programs switches."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controller.errors import DaemonError
from controller.rules.flow_rules import RulesBySwitch
from topologies.routing import Routing


class SouthboundError(DaemonError):
    """A switch refused its rules; the message names it."""


class SwitchCondition(StrEnum):
    """The state of a switch as the controller sees it."""

    AWAY = "away"
    BEHIND = "behind"
    CAUGHT_UP = "caught up"
    REFUSES = "refuses"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """A switch, its address and condition, and the problem if it has one.

    ``num_rules`` counts the rules that it is known to hold, None where that is not known. ``changed_ago_s`` is how long
    it has been reached or away; ``drifted`` counts the entries that others had changed, and that were repaired.
    """

    name: str
    address: str
    device_id: int
    condition: SwitchCondition
    problem: str
    num_rules: int | None
    changed_ago_s: float = 0.0
    drifted: int = 0


class Southbound(Protocol):
    """Programs the switches of a fabric with rules. RecordingSouthbound is one without switches, for tests."""

    async def write(self, rules: RulesBySwitch) -> None:
        """Give every switch these rules; return when all connected switches have acknowledged them.

        Rules written before are deleted. Rules that a switch held when the controller started are deleted only by
        ``forget_found``. A switch that is away gets its rules when it is back.

        Raises:
            SouthboundError: A switch refuses.
        """

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """Write rules, then have every switch route what no rule steers as ``routing`` says.

        Raises:
            SouthboundError: A switch refuses.
        """

    async def forget_found(self) -> None:
        """Delete all rules on switches but those written.

        Raises:
            SouthboundError: A switch refuses.
        """

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """Wait until every switch is connected and has acknowledged its rules, and those in ``down`` are disconnected.

        Raises:
            SouthboundError: Another controller has taken over a switch.
        """

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """Return the status of every switch."""
