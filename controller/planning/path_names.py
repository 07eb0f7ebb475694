"""Paths by the names that ``show paths`` and ``explain`` print, such as ``h0.0>t0.1>a1.0>t1.0>h2``."""

from itertools import pairwise

from controller.links.link_log import listed
from topologies.fabric import Fabric, Path
from topologies.printable import quoted


def path_name(path: Path, fabric: Fabric) -> str:
    """The name of a path: from ``t0.1`` it takes the second of the parallel links to the next node."""
    nodes = fabric.nodes_of(path)
    hops = (f"{node}.{fabric.parallel_index(link)}" for node, link in zip(nodes, path, strict=False))
    return ">".join((*hops, nodes[-1]))


def path_of(name: str, fabric: Fabric) -> Path:
    """The path of a name; where a single link leads to the next node its number may be left out.

    Raises ValueError, naming what the fabric does not have.
    """
    words = [word.strip() for word in name.split(">")]
    if len(words) < 2:
        raise ValueError(f"{quoted(name)} is not a path: expected nodes joined by '>', as show paths has them")
    hops = [_hop(word, fabric, is_last=number == len(words)) for number, word in enumerate(words, 1)]
    path = []
    for (source, chosen), (destination, _) in pairwise(hops):
        links = fabric.links_between(source, destination)
        if not links:
            neighbours = dict.fromkeys(link.destination for link in fabric.links_from[source])
            raise ValueError(f"no link leads from {source} to {destination}; {source} has some to {listed(neighbours)}")
        if chosen is None and len(links) > 1:
            raise ValueError(
                f"{len(links)} links lead from {source} to {destination}: say which, from {source}.0 to"
                f" {source}.{len(links) - 1}"
            )
        if (chosen or 0) >= len(links):
            raise ValueError(f"the links from {source} to {destination} are 0 to {len(links) - 1}, not {chosen}")
        path.append(links[chosen or 0])
    return tuple(path)


def _hop(word: str, fabric: Fabric, *, is_last: bool) -> tuple[str, int | None]:
    """The node that a word names, and which of its parallel links it says, if it does."""
    node, dot, number = word.rpartition(".")
    if not is_last and dot and node in fabric.links_from and number.isascii() and number.isdecimal():
        return node, int(number[:9])
    if word not in fabric.links_from:
        raise ValueError(f"no node {quoted(word)} is in the topology")
    return word, None
