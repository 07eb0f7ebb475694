"""Find what operators want to drain by its name, and the cables that belong to it."""

from collections.abc import Mapping
from functools import cached_property

from controller.links.cable_words import cable_words
from controller.links.drains import Drain, DrainKind, DrainTarget, UnknownDrainError
from controller.links.link_health import DrainedCables
from controller.links.link_log import cable_name, listed
from topologies.fabric import Fabric


class DrainTargets:
    """The targets of one fabric by the names that operators type, and their cables."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    def find(self, kind: DrainKind, name: str, other: str | None = None, parallel: int | None = None) -> DrainTarget:
        """Find a target by the name of a node, or for a cable by those of both ends, by ``NODE:PORT`` or by its name.

        A port is a name, of the fabric file for a switch and of the NIC for a host, or a number. ``parallel`` tells
        parallel cables apart. Raises UnknownDrainError.
        """
        if kind is not DrainKind.LINK:
            self._check_node(name, kind)
            return DrainTarget(kind, name)
        if other is not None:
            cable = self._cable_between(name, other, parallel)
        elif (cable := self._cables.get(name, self._shown_cables.get(name, -1))) < 0:
            cable = self._cable_at(name)
        return self.link(cable)

    def cables(self, target: DrainTarget) -> frozenset[int]:
        """The cables of a target; none if the fabric does not have it."""
        if target.kind is DrainKind.LINK:
            cable = self._cables.get(target.name)
            return frozenset() if cable is None else frozenset((cable,))
        if not self.exists(target):
            return frozenset()
        return frozenset(link.index // 2 for link in self.fabric.links_from[target.name])

    def exists(self, target: DrainTarget) -> bool:
        """Whether the fabric has a target."""
        match target.kind:
            case DrainKind.SWITCH:
                return target.name in self.fabric.switch_index
            case DrainKind.HOST:
                return target.name in self.fabric.host_index
        return target.name in self._cables

    def link(self, cable: int) -> DrainTarget:
        """The target that is this cable."""
        return DrainTarget(DrainKind.LINK, _name(self.fabric, cable))

    def leave_alone(self, drain: Drain) -> DrainedCables:
        """The cables that routes are to leave for a drain.

        Nothing else leads to a NIC, so its cable stays in use, as do those of a switch with NICs, unless forced.
        """
        cables = self.cables(drain.target)
        is_kept = not drain.is_forced and any(self._is_of_nic(cable) for cable in cables)
        return DrainedCables(frozenset() if is_kept else cables, drain.is_forced)

    def _is_of_nic(self, cable: int) -> bool:
        return not self.fabric.switch_index.keys() >= {*self.fabric.cables[cable].ends}

    def _check_node(self, name: str, kind: DrainKind) -> None:
        fabric = self.fabric
        nodes, others = fabric.hosts, fabric.switch_index
        if kind is DrainKind.SWITCH:
            nodes, others = fabric.switches, fabric.host_index
        if name not in nodes:
            hint = f"; it is a {DrainKind.HOST if kind is DrainKind.SWITCH else DrainKind.SWITCH}" * (name in others)
            raise UnknownDrainError(f"no {kind} {name!r} is in the topology{hint or f', which has {listed(nodes)}'}")

    def _cable_at(self, end: str) -> int:
        node, colon, port = end.rpartition(":")
        if not colon or node not in self.fabric.links_from:
            raise UnknownDrainError(f"no link {end!r} is in the topology: expected NODE:PORT, NODE NODE or a name")
        names, links = self.fabric.port_names[node], self.fabric.links_from[node]
        named = [link.index // 2 for link in links if names.get(link.source_port) == port]
        numbered = [link.index // 2 for link in links if str(link.source_port) == port]
        if named and numbered and named != numbered:
            raise UnknownDrainError(f"{end}: a port at {node} has this name and another one this number; use NODE NODE")
        if named or numbered:
            return (named or numbered)[0]
        ports = [names.get(link.source_port, str(link.source_port)) for link in links]
        raise UnknownDrainError(f"no port {port!r} is at {node}, which has {listed(ports)}")

    def _cable_between(self, first: str, second: str, parallel: int | None) -> int:
        for node in (first, second):
            if node not in self.fabric.links_from:
                raise UnknownDrainError(f"no node {node!r} is in the topology")
        links = self.fabric.links_between(first, second)
        if not links:
            neighbours = dict.fromkeys(link.destination for link in self.fabric.links_from[first])
            raise UnknownDrainError(
                f"no cable is between {first} and {second}; {first} has some to {listed(neighbours)}"
            )
        if parallel is None and len(links) > 1:
            raise UnknownDrainError(
                f"{len(links)} cables are between {first} and {second}: say which with --parallel 0 to {len(links) - 1}"
            )
        if not 0 <= (parallel or 0) < len(links):
            raise UnknownDrainError(
                f"the cables between {first} and {second} are 0 to {len(links) - 1}, not {parallel}"
            )
        return links[parallel or 0] // 2

    @cached_property
    def _cables(self) -> Mapping[str, int]:
        return {_name(self.fabric, cable): cable for cable in range(len(self.fabric.cables))}

    @cached_property
    def _shown_cables(self) -> Mapping[str, int]:
        """Cables by the names of ``trainyard show links`` and ``show cables``."""
        return {
            words(self.fabric, 2 * cable): cable
            for words in (cable_name, cable_words)
            for cable in range(len(self.fabric.cables))
        }


def _name(fabric: Fabric, cable: int) -> str:
    """The name of a cable by its ports, whichever end a fabric file has first and whatever is parallel to it."""
    return " - ".join(sorted(cable_words(fabric, 2 * cable).split(" - ")))
