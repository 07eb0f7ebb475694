"""Shortest-path routing: the routes of every switch, and the candidate paths of flows."""

from collections import deque
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc, hash_of_crc
from topologies.fabric import Fabric, Nic, Path

_LinksTowards = Callable[[str], Mapping[str, tuple[int, ...]]]

_MAX_CACHED_PAIRS = 1 << 10
"""Pairs of switches whose paths are cached; the NICs of two hosts mostly share theirs."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route: destinations under a prefix leave by one of these links; several links are an ECMP group.

    The order of the links is the order of the group's members, by which the hash selects.
    """

    address: int
    prefix_length: int
    links: tuple[int, ...]


class Routing:
    """Shortest-path routing of a fabric, with ECMP over all shortest paths.

    ``hash_multipliers`` has each switch's odd hash value (``topologies.ecmp``). The destination NIC determines the last
    switch: if the NICs of a host connect to different ToRs, so do the paths to them. ``dead`` links, both directions of
    a cable, do not exist for routing: paths around them are the shortest that remain, and a switch without one has no
    route.
    """

    def __init__(self, fabric: Fabric, hash_multipliers: Mapping[str, int], dead: Set[int] = frozenset()) -> None:
        self.fabric = fabric
        self.hash_multipliers = hash_multipliers
        self.dead = frozenset(dead)
        # The caches hold no reference to this object, so they are freed with it.
        self._links_towards = cache(partial(_links_towards, fabric, self.dead))
        self._middle_paths = lru_cache(_MAX_CACHED_PAIRS)(partial(_middle_paths, fabric, self._links_towards))

    def without(self, dead: Set[int]) -> "Routing":
        """Return the routing with these dead links and no others."""
        return self if dead == self.dead else Routing(self.fabric, self.hash_multipliers, dead)

    def next_links(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """Return the links of a switch towards a NIC, in the order of the ECMP group; none if no path is left.

        If the NIC's own cable is dead, there are none from any switch.
        """
        attachment = self.fabric.links[destination.link].destination
        last = self.fabric.reverse(destination.link)
        if last in self.dead:
            return ()
        return (last,) if switch == attachment else self._links_towards(attachment).get(switch, ())

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Return a switch's routes to all hosts.

        A host has one /24 route if its NICs share their links, else a /32 route for each reachable NIC.
        """
        found: list[Route] = []
        for nics, attachment in self._attached:
            if attachment not in (None, switch):
                choices = [self._links_towards(attachment).get(switch, ())]
            else:
                choices = [self.next_links(switch, nic) for nic in nics]
            if len(set(choices)) == 1:
                found.append(Route(nics[0].address & ~0xFF, 24, choices[0]))
            else:
                found += [Route(nic.address, 32, links) for nic, links in zip(nics, choices, strict=True)]
        return tuple(route for route in found if route.links)

    def candidate_paths(self, source: Nic, destination: Nic) -> tuple[Path, ...]:
        """Return all paths that ECMP can give to a pair of NICs, in lexical order of member positions.

        There are none if dead links cut the pair off.
        """
        links = self.fabric.links
        last = self.fabric.reverse(destination.link)
        if source.link in self.dead or last in self.dead:
            return ()
        middles = self._middle_paths(links[source.link].destination, links[destination.link].destination)
        return tuple((source.link, *middle, last) for middle in middles)

    def hashed_path(self, five_tuple: FiveTuple) -> Path:
        """Return the path that the fabric's hash gives to a flow without a rule.

        Raises ValueError if dead links left no path.
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
        """NICs of every host, and the switch to which all of them connect by live cables, if there is one."""
        links = self.fabric.links
        ends = {
            host: {links[nic.link].destination if nic.link not in self.dead else None for nic in nics}
            for host, nics in self.fabric.nics.items()
        }
        return tuple(
            (nics, next(iter(ends[host])) if len(ends[host]) == 1 else None) for host, nics in self.fabric.nics.items()
        )


def _middle_paths(fabric: Fabric, links_towards: _LinksTowards, switch: str, attachment: str) -> tuple[Path, ...]:
    """Return the paths from one switch to another, the part between the NICs' own links."""
    onward = links_towards(attachment)
    complete: list[Path] = []
    begun: list[tuple[str, Path]] = [(switch, ())]
    while begun:
        node, path = begun.pop()
        if node == attachment:
            complete.append(path)
        else:
            begun += [(fabric.links[link].destination, (*path, link)) for link in reversed(onward.get(node, ()))]
    return tuple(complete)


def _links_towards(fabric: Fabric, dead: Set[int], attachment: str) -> Mapping[str, tuple[int, ...]]:
    """Return, for every switch that reaches ``attachment``, its links to neighbours one hop closer to it."""
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
