"""Provide a Southbound without switches, for tests and runs without a network."""

from collections.abc import Collection, Iterable

from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.southbound import SwitchCondition, SwitchStatus
from topologies.routing import Routing


class RecordingSouthbound:
    """A Southbound whose switches are always connected and accept everything.

        southbound = RecordingSouthbound(fabric.switches)
        await southbound.write(rules)
        assert southbound.written == [rules]

    ``written`` has the rules of every write and ``routings`` every routing, in order. ``keeps_found`` tells whether
    rules of an earlier controller would still be there, ``serves_levels`` whether marked packets have their levels.
    """

    def __init__(self, switches: Iterable[str] = ()) -> None:
        self.written: list[RulesBySwitch] = []
        self.routings: list[Routing] = []
        self.keeps_found = True
        self.serves_levels = True
        self._switches = tuple(switches)

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        self.written.append(rules)

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """See Southbound."""
        await self.write(rules)
        self.routings.append(routing)

    async def forget_found(self) -> None:
        """See Southbound."""
        self.keeps_found = False

    async def release(self) -> None:
        """See Southbound."""
        await self.write({})
        self.keeps_found = self.serves_levels = False

    async def serve_levels(self) -> None:
        """See Southbound."""
        self.serves_levels = True

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """See Southbound."""

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""
        rules = self.written[-1] if self.written else {}
        return tuple(
            SwitchStatus(name, "", 1, SwitchCondition.CAUGHT_UP, "", len(rules.get(name, ())))
            for name in self._switches
        )
