"""What two fabrics have in common: nodes by their names, cables by their names and ports at both ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from topologies.fabric import Fabric, HostLink, Link, Path

_End = tuple[str, int, str, int]


@dataclass(frozen=True)
class FabricMatch:
    """The fabric until now and the one from now on. The numbers of links and cables may differ between the two."""

    before: Fabric
    after: Fabric

    @cached_property
    def links(self) -> dict[int, int]:
        """The numbers of the links that both have, inside hosts too: before, and from now on."""
        numbers = {_ends(link): link.index for link in self.after.links}
        found = {link.index: numbers[_ends(link)] for link in self.before.links if _ends(link) in numbers}
        inside = {_place(link): link.index for link in self.after.host_links}
        return found | {link.index: inside[_place(link)] for link in self.before.host_links if _place(link) in inside}

    @cached_property
    def cables(self) -> dict[int, int]:
        """The numbers of the cables that both have: before, and from now on."""
        num_links = len(self.before.links)
        return {link // 2: after // 2 for link, after in self.links.items() if link < num_links}

    @cached_property
    def leaving(self) -> frozenset[int]:
        """The cables that only the fabric until now has."""
        return frozenset(range(len(self.before.cables))) - self.cables.keys()

    @cached_property
    def coming(self) -> frozenset[int]:
        """The cables that only the new fabric has."""
        return frozenset(range(len(self.after.cables))) - set(self.cables.values())

    def path(self, path: Path) -> Path | None:
        """A path by its numbers from now on; None where a link of it is no more."""
        if not self.links.keys() >= set(path):
            return None
        return tuple(self.links[link] for link in path)

    def cables_of(self, cables: Iterable[int]) -> frozenset[int]:
        """Cables by their numbers from now on, without those that are no more."""
        return frozenset(self.cables[cable] for cable in cables if cable in self.cables)


def _ends(link: Link) -> _End:
    return link.source, link.source_port, link.destination, link.destination_port


def _place(link: HostLink) -> tuple[str, int, bool]:
    return link.host, link.switch, link.is_outgoing
