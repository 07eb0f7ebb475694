"""Define what the planner needs from a protocol that programs switches."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controller.errors import DaemonError
from controller.rules.flow_rules import RulesBySwitch
from topologies.addressing import Address, MacAddress
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

    async def release(self) -> None:
        """Delete all rules on switches, and the levels that they serve; base routing stays.

        The ports of an OpenFlow switch with ``queues: dscp`` go on to serve packets by the marks that these come with.

        Raises:
            SouthboundError: A switch refuses.
        """

    async def serve_levels(self) -> None:
        """Have switches serve levels again after ``release``; does nothing where all do.

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


WakeUp = Callable[[], None]


@dataclass(frozen=True, slots=True)
class PacketArrival:
    """A frame that a switch has handed to the controller, and the port that it came in by."""

    switch: str
    port: int
    octets: bytes


class PacketPorts(Protocol):
    """The ports of switches, as far as the controller itself sends and receives frames there."""

    @property
    def connected(self) -> Collection[str]:
        """The switches that can send frames now."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many frames found no room, by switch."""

    def listen(self, wake: WakeUp) -> None:
        """Keep frames that arrive from now on, and call ``wake`` when the first one waits."""

    def take(self, most: int) -> list[PacketArrival]:
        """Take the frames that wait, in the order in which they came, at most so many."""

    def send(self, name: str, packets: Iterable[tuple[int, bytes]]) -> None:
        """Have frames sent from ports of a switch, each with the port's number; those for one that is away are lost."""


class DiscoveringSouthbound(Protocol):
    """What finding out cables and neighbours needs of a southbound."""

    @property
    def packets(self) -> PacketPorts:
        """The frames from and to the ports of switches."""

    def neighbours(self) -> Mapping[Address, MacAddress]:
        """Return the MACs that switches have for such NICs; at first those that were found there."""

    async def set_neighbours(self, macs: Mapping[Address, MacAddress]) -> None:
        """Give switches the MACs of NICs that the fabric file has none for; all others of these are unknown.

        Raises:
            SouthboundError: A switch refuses.
        """
