"""Shortest-path routing: what every switch does with a destination, and the paths this leaves a flow."""

from collections import deque
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc, hash_of_crc
from topologies.fabric import Fabric, Nic, Path

_LinksTowards = Callable[[str], Mapping[str, tuple[int, ...]]]

_REMEMBERED_WAYS = 1 << 10
"""Between so many pairs of switches: the NICs of two hosts mostly share theirs."""


@dataclass(frozen=True, slots=True)
class Route:
    """Destinations under a prefix leave by one of these links; more than one is an ECMP group.

    The order of the links is the order of the group's members, which the hash indexes.
    """

    address: int
    prefix_length: int
    links: tuple[int, ...]


class Routing:
    """Shortest-path routing of a fabric, with ECMP over all equally short ways.

    ``hash_multipliers`` gives every switch the odd value that tells its hash from its neighbours'
    (``topologies.ecmp``). The NIC that a flow is sent to decides the last switch: where the NICs of a host hang off
    different ToRs, so do the ways to them. ``dead`` links, both directions of a cable, are not there: ways around them
    are as short as is left, and where there is none a switch has no route.
    """

    def __init__(self, fabric: Fabric, hash_multipliers: Mapping[str, int], dead: Set[int] = frozenset()) -> None:
        self.fabric = fabric
        self.hash_multipliers = hash_multipliers
        self.dead = frozenset(dead)
        # What is remembered refers to no routing, so that it goes with this one.
        self._links_towards = cache(partial(_links_towards, fabric, self.dead))
        self._ways = lru_cache(_REMEMBERED_WAYS)(partial(_ways, fabric, self._links_towards))

    def without(self, dead: Set[int]) -> "Routing":
        """The same fabric with these links dead, and no others."""
        return self if dead == self.dead else Routing(self.fabric, self.hash_multipliers, dead)

    def next_links(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """Links that a switch may use towards a NIC, in the order of the ECMP group's members; none where none leads.

        Where the NIC's own cable is dead none does, whatever the switch.
        """
        attachment = self.fabric.links[destination.link].destination
        last = self.fabric.reverse(destination.link)
        if last in self.dead:
            return ()
        return (last,) if switch == attachment else self._links_towards(attachment).get(switch, ())

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Routes of a switch to every host: a /24 where the host's NICs share a way, else a /32 each that has one."""
        found: list[Route] = []
        for nics, attachment in self._attached:
            if attachment not in (None, switch):
                ways = [self._links_towards(attachment).get(switch, ())]
            else:
                ways = [self.next_links(switch, nic) for nic in nics]
            if len(set(ways)) == 1:
                found.append(Route(nics[0].address & ~0xFF, 24, ways[0]))
            else:
                found += [Route(nic.address, 32, links) for nic, links in zip(nics, ways, strict=True)]
        return tuple(route for route in found if route.links)

    def candidate_paths(self, source: Nic, destination: Nic) -> tuple[Path, ...]:
        """Every path that the fabric's ECMP can give to a pair of NICs, in lexical order of member positions.

        None where dead links have left none.
        """
        links = self.fabric.links
        last = self.fabric.reverse(destination.link)
        if source.link in self.dead or last in self.dead:
            return ()
        ways = self._ways(links[source.link].destination, links[destination.link].destination)
        return tuple((source.link, *way, last) for way in ways)

    def hashed_path(self, five_tuple: FiveTuple) -> Path:
        """The path that the fabric's hash gives to a flow that no rule steers.

        Raises ValueError where dead links have left none.
        """
        nics = self.fabric.nic_by_address
        destination = nics[five_tuple.destination_address]
        crc = flow_crc(five_tuple)
        path = [nics[five_tuple.source_address].link]
        if path[0] in self.dead:
            raise ValueError(f"no path is left for {five_tuple}")
        while (node := self.fabric.links[path[-1]].destination) != destination.host:
            choices = self.next_links(node, destination)
            if not choices:
                raise ValueError(f"no path is left for {five_tuple}")
            path.append(choices[hash_of_crc(crc, self.hash_multipliers[node]) % len(choices)])
        return tuple(path)

    @cached_property
    def _attached(self) -> tuple[tuple[tuple[Nic, ...], str | None], ...]:
        """NICs of every host, and the switch that all of them hang off by cables that are alive, if there is one."""
        links = self.fabric.links
        ends = {
            host: {links[nic.link].destination if nic.link not in self.dead else None for nic in nics}
            for host, nics in self.fabric.nics.items()
        }
        return tuple(
            (nics, next(iter(ends[host])) if len(ends[host]) == 1 else None) for host, nics in self.fabric.nics.items()
        )


def _ways(fabric: Fabric, links_towards: _LinksTowards, switch: str, attachment: str) -> tuple[Path, ...]:
    """The middles of all paths from NICs behind one switch to NICs behind another."""
    onward = links_towards(attachment)
    complete: list[Path] = []
    begun: list[tuple[str, Path]] = [(switch, ())]
    while begun:
        node, way = begun.pop()
        if node == attachment:
            complete.append(way)
        else:
            begun += [(fabric.links[link].destination, (*way, link)) for link in reversed(onward.get(node, ()))]
    return tuple(complete)


def _links_towards(fabric: Fabric, dead: Set[int], attachment: str) -> Mapping[str, tuple[int, ...]]:
    """For every switch that still reaches the switch ``attachment``, its links to neighbours one hop closer to it."""
    hops, queue = {attachment: 0}, deque([attachment])
    while queue:
        node = queue.popleft()
        for link in fabric.links_from[node]:
            if link.index in dead:
                continue
            if link.destination in fabric.switch_index and link.destination not in hops:
                hops[link.destination] = hops[node] + 1
                queue.append(link.destination)
    return {
        switch: tuple(
            link.index
            for link in fabric.links_from[switch]
            if link.index not in dead and hops.get(link.destination, distance) == distance - 1
        )
        for switch, distance in hops.items()
    }
