"""Routing that somebody else has filled into the switches, as it was read there: the paths and choices that it has.

Nothing is assumed of it. Its routes may lead to ports without cables, or in circles; such parts are named, and no path
goes there.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc
from topologies.fabric import Fabric, Nic, Path
from topologies.loops import links_in_loops
from topologies.paths import NO_LINK
from topologies.routing import Route, Routing

MAX_PATHS = 1024
"""More paths between two NICs are left out."""

_MAX_CACHED = 1 << 10


@dataclass(frozen=True)
class GivenRoutes:
    """The routes of one switch, with its number for the hash.

    ``Route.links`` has the members of a group as the hash indexes them, ``NO_LINK`` for one whose way out is not known.
    """

    routes: tuple[Route, ...]
    hash_multiplier: int = 1

    @cached_property
    def by_length(self) -> dict[int, dict[int, tuple[int, ...]]]:
        """The members of routes by length of their prefixes, the longest first, and by address."""
        found: dict[int, dict[int, tuple[int, ...]]] = {}
        for route in sorted(self.routes, key=lambda route: -route.prefix_length):
            found.setdefault(route.prefix_length, {})[route.address >> 32 - route.prefix_length] = route.links
        return found


_NOTHING = GivenRoutes(())


class GivenRouting(Routing):
    """The routing of a fabric whose switches somebody else has filled; ordinary switches take shortest paths.

    ``given`` has the routes of each switch that has been read; others have none. Where a link dies, nobody knows
    whether a switch leaves it out of its groups by itself, so that its choices are not known until it is read again.
    """

    def __init__(
        self,
        fabric: Fabric,
        given: Mapping[str, GivenRoutes],
        dead: Set[int] = frozenset(),
        drained: Set[int] = frozenset(),
        whole: Routing | None = None,
    ) -> None:
        multipliers = {switch: given[switch].hash_multiplier if switch in given else 1 for switch in fabric.switches}
        super().__init__(fabric, multipliers, dead, drained, whole)
        self._given = given
        # The caches are bounded, and freed with the object once its cycles are collected.
        self._onward = lru_cache(_MAX_CACHED)(self._onward_without_loops)
        self._switch_paths = lru_cache(_MAX_CACHED)(self._paths_between)

    def without(self, dead: Set[int], drained: Set[int] = frozenset()) -> Routing:
        """Return the same routing with these dead links, some of which are drained, and no others."""
        if (dead, drained) == (self.dead, self.drained):
            return self
        return GivenRouting(self.fabric, self._given, dead, drained, self.whole) if dead else self.whole

    def with_hash(self, multipliers: Mapping[str, int]) -> Routing:
        """Return the same routing of the whole fabric where these switches have other hash multipliers."""
        given = {
            switch: replace(self._given.get(switch, _NOTHING), hash_multiplier=multipliers[switch])
            for switch in multipliers
        }
        return GivenRouting(self.fabric, {**self._given, **given})

    def next_links(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """Return the live links of a switch towards a NIC, each once, without those on which packets would circle."""
        return self._onward(destination.address).get(switch, ())

    def hash_choices(self, switch: str, destination: Nic) -> tuple[int, ...] | None:
        """See Routing; not known either where a member of the group leads nowhere or to a dead link."""
        if switch in self.fabric.ordinary_switches:
            return super().hash_choices(switch, destination)
        members = self._members(switch, destination)
        is_known = bool(members) and NO_LINK not in members and self.dead.isdisjoint(members)
        return members if is_known else None

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Return a switch's routes as they were read."""
        return self._given[switch].routes if switch in self._given else ()

    def candidate_paths(self, source: Nic, destination: Nic) -> tuple[Path, ...]:
        """Return all paths that the routes have from NIC to NIC, in lexical order of member positions."""
        links = self.fabric.links
        if source.link in self.dead or self.fabric.reverse(destination.link) in self.dead:
            return ()
        found = self._switch_paths(links[source.link].destination, destination.address)
        return tuple((source.link, *path) for path in found)

    def hashed_path(self, five_tuple: FiveTuple) -> Path:
        """Return the path that the hash gives to a flow without a rule; where it is not known, a candidate path.

        Raises ValueError if there is none.
        """
        nics = self.fabric.nic_by_address
        source, destination = nics[five_tuple.source_address], nics[five_tuple.destination_address]
        candidates = self.candidate_paths(source, destination)
        if not candidates:
            raise ValueError(f"no path is left for {five_tuple}")
        crc, path = flow_crc(five_tuple), [source.link]
        while (node := self.fabric.links[path[-1]].destination) != destination.host:
            onward = self.next_links(node, destination)
            choices = self.hash_choices(node, destination) or onward
            link = self.hashed_link(node, crc, choices) if choices else NO_LINK
            if link not in onward:
                return candidates[0]
            path.append(link)
        return tuple(path)

    def problems(self) -> Iterator[str]:
        """Iterate over what cannot be used: switches without a route to a NIC, and routes that lead in a circle.

        Each is named once for all NICs of a subnet.
        """
        told: set[str] = set()
        for nic in self.fabric.nic_by_address.values():
            for problem in self._problems_towards(nic):
                if problem not in told:
                    told.add(problem)
                    yield problem

    def _problems_towards(self, nic: Nic) -> Iterator[str]:
        used = self._used_links(nic)
        loops = links_in_loops(self._ends(used))
        if loops:
            switches = sorted({self.fabric.links[link].source for link in loops})
            yield f"routes to {nic.subnet} lead in a circle: {', '.join(switches)}"
        for switch, members in used.items():
            if not members and switch in self._given:
                yield f"switch {switch}: no usable route to {nic.subnet}"

    def _members(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """Return the members that a switch's route to a NIC has; links to other hosts count as not known."""
        for length, by_address in self._given.get(switch, _NOTHING).by_length.items():
            links = by_address.get(destination.address >> 32 - length)
            if links is not None:
                return tuple(link if self._leads_on(link, destination) else NO_LINK for link in links)
        return ()

    def _leads_on(self, link: int, destination: Nic) -> bool:
        if link == NO_LINK:
            return False
        end = self.fabric.links[link].destination
        return end in self.fabric.switch_index or link == self.fabric.reverse(destination.link)

    def _used_links(self, destination: Nic) -> dict[str, tuple[int, ...]]:
        """Return the live links of every switch towards a NIC."""
        found = {}
        for switch in self.fabric.switches:
            if switch in self.fabric.ordinary_switches:
                found[switch] = super().next_links(switch, destination)
            else:
                members = dict.fromkeys(self._members(switch, destination))
                found[switch] = tuple(link for link in members if link != NO_LINK and link not in self.dead)
        return found

    def _onward_without_loops(self, address: int) -> Mapping[str, tuple[int, ...]]:
        used = self._used_links(self.fabric.nic_by_address[address])
        loops = links_in_loops(self._ends(used))
        return {switch: tuple(link for link in links if link not in loops) for switch, links in used.items()}

    def _ends(self, used: Mapping[str, tuple[int, ...]]) -> dict[str, dict[int, str]]:
        links = self.fabric.links
        return {switch: {link: links[link].destination for link in leaving} for switch, leaving in used.items()}

    def _paths_between(self, switch: str, address: int) -> tuple[Path, ...]:
        """Return the paths from a switch to a NIC; without loops, every walk ends."""
        onward, links = self._onward(address), self.fabric.links
        host = self.fabric.nic_by_address[address].host
        reaches = _reaching(host, {each: {links[link].destination for link in out} for each, out in onward.items()})
        complete: list[Path] = []
        begun: list[tuple[str, Path]] = [(switch, ())] if switch in reaches else []
        while begun and len(complete) < MAX_PATHS:
            node, path = begun.pop()
            if node == host:
                complete.append(path)
            else:
                ends = ((links[link].destination, (*path, link)) for link in reversed(onward[node]))
                begun += [(end, longer) for end, longer in ends if end in reaches]
        return tuple(complete)


def _reaching(node: str, ends: Mapping[str, Set[str]]) -> set[str]:
    """Return the nodes from which a node can be reached, itself included."""
    before: dict[str, list[str]] = {}
    for start, nexts in ends.items():
        for end in nexts:
            before.setdefault(end, []).append(start)
    found, queue = {node}, [node]
    while queue:
        for start in before.get(queue.pop(), ()):
            if start not in found:
                found.add(start)
                queue.append(start)
    return found
