"""Shortest-path routing: the routes of every switch, and the candidate paths of flows."""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

from topologies.addressing import Address, FiveTuple, Prefix
from topologies.ecmp import SwitchHash, flow_crc
from topologies.fabric import Fabric, Nic, Path
from topologies.targets import TARGETS

_LinksTowards = Callable[[str], Mapping[str, tuple[int, ...]]]

_MAX_CACHED_PAIRS = 1 << 10
"""Pairs of switches whose paths are cached; the NICs of two hosts mostly share theirs."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route: destinations under a prefix leave by one of these links; several links are an ECMP group.

    The order of the links is the order of the group's members, by which the hash selects.
    """

    address: Address
    prefix_length: int
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Subnet:
    """The NICs of a subnet by the switch that a live cable connects them to, and whether several hosts have them."""

    prefix: Prefix
    attached: Mapping[str | None, Sequence[Nic]]
    is_shared: bool


class Routing:
    """Shortest-path routing of a fabric, with ECMP over all shortest paths.

    ``hash_multipliers`` has each switch's odd number for its hash (``topologies.ecmp``). The destination NIC determines
    the last switch: if the NICs of a host connect to different ToRs, so do the paths to them. ``dead`` links, both
    directions of a cable, do not exist for routing: paths around them are the shortest that remain, and a switch
    without one has no route. ``drained`` are those of the dead links that still work. A switch between others whose
    cables are all drained goes on to forward what has been sent to it, although nobody sends anything there any longer.
    """

    def __init__(
        self,
        fabric: Fabric,
        hash_multipliers: Mapping[str, int],
        dead: Set[int] = frozenset(),
        drained: Set[int] = frozenset(),
        whole: "Routing | None" = None,
    ) -> None:
        self.whole = whole or self
        """The same routing without dead links."""
        self.fabric = fabric
        self.hash_multipliers = hash_multipliers
        self.dead = frozenset(dead)
        self.drained = frozenset(drained)
        self._ordinary = fabric.ordinary_switches
        # The caches hold no reference to this object, so they are freed with it.
        self._links_towards = cache(partial(_links_towards, fabric, self.dead))
        self._working_links_towards = cache(partial(_links_towards, fabric, self.dead - self.drained))
        self._middle_paths = lru_cache(_MAX_CACHED_PAIRS)(partial(_middle_paths, fabric, self._links_towards))

    def without(self, dead: Set[int], drained: Set[int] = frozenset()) -> "Routing":
        """Return the routing with these dead links, some of which are drained, and no others."""
        if (dead, drained) == (self.dead, self.drained):
            return self
        return Routing(self.fabric, self.hash_multipliers, dead, drained, self.whole) if dead else self.whole

    def with_hash(self, multipliers: Mapping[str, int]) -> "Routing":
        """Return the same routing of the whole fabric where these switches have other hash multipliers."""
        return Routing(self.fabric, {**self.hash_multipliers, **multipliers})

    @cached_property
    def hashes(self) -> Mapping[str, SwitchHash]:
        """How every switch chooses among several links."""
        if self.whole is not self:
            return self.whole.hashes
        identity = self.fabric.identity
        return {name: TARGETS[identity[name].target].hash_law(own) for name, own in self.hash_multipliers.items()}

    def is_same_as(self, other: "Routing") -> bool:
        """Return whether another routing is the same one with the same dead and drained links."""
        return self.whole is other.whole and (self.dead, self.drained) == (other.dead, other.drained)

    def next_links(self, switch: str, destination: Nic) -> tuple[int, ...]:
        """Return the links of a switch towards a NIC, in the order of the ECMP group; none if no path is left.

        If the NIC's own cable is dead, there are none from any switch.
        """
        attachment = self.fabric.links[destination.link].destination
        last = self.fabric.reverse(destination.link)
        if last in self.dead:
            return ()
        return (last,) if switch == attachment else self._towards(switch, attachment)

    def hops_to(self, attachment: str) -> Mapping[str, int]:
        """Return how many links every switch that has a path to a switch is away from it."""
        hops: dict[str, int] = {}
        # In ascending order of distance, so that the next switch is known already.
        for switch, links in self._links_towards(attachment).items():
            hops[switch] = 1 + hops[self.fabric.links[links[0]].destination] if links else 0
        return hops

    def hash_choices(self, switch: str, destination: Nic) -> tuple[int, ...] | None:
        """Return the links that a switch's hash indexes towards a NIC, as often as it has them; None if not known.

        What an ordinary switch does with its choices is not known, unless it has only one.
        """
        choices = self.next_links(switch, destination)
        return None if len(choices) > 1 and switch in self._ordinary else choices

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Return a switch's routes to all hosts.

        A subnet has one route if all its NICs share their links, else one for each reachable NIC. Where most NICs of
        several hosts share their links, the subnet has a route by these, and single routes for the others: packets for
        a NIC that is cut off go as far as its last switch.
        """
        found: list[Route] = []
        for subnet in self._subnets:
            prefix, attached = subnet.prefix, subnet.attached
            if len(attached) == 1 and switch not in attached:
                found.append(Route(prefix.address, prefix.length, self._towards(switch, *attached)))
                continue
            choices = {nic: self.next_links(switch, nic) for nics in attached.values() for nic in nics}
            (common, times), *others = Counter(choices.values()).most_common()
            if not others or (subnet.is_shared and 2 * times > len(choices)):
                found.append(Route(prefix.address, prefix.length, common))
                choices = {nic: links for nic, links in choices.items() if links != common}
            found += [Route(nic.address, 32, links) for nic, links in choices.items()]
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
        """Return the path that the fabric's hash gives to a flow without a rule; at ordinary switches it is a guess.

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
            path.append(self.hashed_link(node, crc, choices))
        return tuple(path)

    def hashed_link(self, switch: str, crc: int, choices: Sequence[int]) -> int:
        """Return which of its choices, of which there is one at least, a switch's hash gives to a flow with this CRC.

        The CRC is ``topologies.ecmp.flow_crc``.
        """
        return choices[self.hashes[switch].choice(crc, len(choices))]

    def _towards(self, switch: str, attachment: str | None) -> tuple[int, ...]:
        if attachment is None:
            return ()
        towards = self._working_links_towards if switch in self._emptied else self._links_towards
        return towards(attachment).get(switch, ())

    @cached_property
    def _emptied(self) -> frozenset[str]:
        """The switches between others whose working cables are all drained."""
        near_drained = {self.fabric.links[link].source for link in self.drained} & self.fabric.switch_index.keys()
        return frozenset(
            switch
            for switch in near_drained
            if all(
                link.index in self.dead and link.destination in self.fabric.switch_index
                for link in self.fabric.links_from[switch]
            )
        )

    @cached_property
    def _subnets(self) -> tuple[_Subnet, ...]:
        found: dict[Prefix, dict[str | None, list[Nic]]] = {}
        for nics in self.fabric.nics.values():
            for nic in nics:
                attachment = None if nic.link in self.dead else self.fabric.links[nic.link].destination
                found.setdefault(nic.subnet, {}).setdefault(attachment, []).append(nic)
        return tuple(
            _Subnet(prefix, attached, len({nic.host for nics in attached.values() for nic in nics}) > 1)
            for prefix, attached in found.items()
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
