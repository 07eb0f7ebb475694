"""Go from one routing to another in steps, none of which sends packets in a circle or drops one."""

from collections.abc import Iterator, Mapping
from functools import cache

from topologies.fabric import Nic
from topologies.routing import Routing


def steps_between(before: Routing, after: Routing) -> Iterator[Routing]:
    """Yield the routings to install one after the other, each on all switches before the next; ``after`` comes last.

    Where links are taken away, switches change in order of their distance to the destination without these links, the
    next ones first: whatever a changed switch sends goes on over changed switches, and all others send as they did,
    until the packet meets a changed one. Where links are added, the same steps are taken backwards. Where one routing
    has not all links of the other, there is no step between the two.
    """
    if before.dead < after.dead:
        towards, fewer, more = range(_farthest(after) + 1), after, before
    elif after.dead < before.dead:
        towards, fewer, more = range(_farthest(before), -1, -1), before, after
    else:
        yield after
        return
    yield from (_RoutingBetween(fewer, more, hops) for hops in towards)
    yield after


class _RoutingBetween(Routing):
    """A routing with ``fewer`` links on switches at most so many hops from the destination, and ``more`` on others."""

    def __init__(self, fewer: Routing, more: Routing, hops: int) -> None:
        super().__init__(more.fabric, more.hash_multipliers, more.dead, more.drained)
        self._fewer, self._more, self._hops = fewer, more, hops
        self._hops_to = cache(fewer.hops_to)

    def next_links(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """See Routing."""
        attachment = self.fabric.links[destination.link].destination
        return self._routing_of(switch, attachment).next_links(switch, destination)

    def _towards(self, switch: str, attachment: str | None) -> tuple[int, ...]:
        if attachment is None:
            return ()
        return self._routing_of(switch, attachment)._towards(switch, attachment)

    def _routing_of(self, switch: str, attachment: str) -> Routing:
        hops: Mapping[str, int] = self._hops_to(attachment)
        return self._fewer if hops.get(switch, self._hops + 1) <= self._hops else self._more


def _farthest(routing: Routing) -> int:
    attachments = {routing.fabric.links[nic.link].destination for nic in routing.fabric.nic_by_address.values()}
    return max(max(routing.hops_to(attachment).values(), default=0) for attachment in attachments)
