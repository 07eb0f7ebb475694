"""Find the cables that a fabric can do without: those whose switches still reach each other over other cables."""

from collections.abc import Iterable, Set

from topologies.fabric import Fabric


def removable_cables(fabric: Fabric, down: Set[int], unwanted: Iterable[int]) -> frozenset[int]:
    """Return which of the unwanted cables can be taken out of use without cutting anybody off.

    The cables are tried in ascending order, each without those removed before it. A cable that is needed stays in use,
    as it may be better than nothing; so does every host's own cable.

    Args:
        fabric: The fabric.
        down: Cables that are down, which cannot carry anything.
        unwanted: Cables that are up but should not be used.
    """
    removed = set(down)
    for cable in sorted(set(unwanted) - down):
        ends = fabric.cables[cable].ends
        if fabric.switch_index.keys() >= set(ends) and _are_connected(fabric, removed | {cable}, *ends):
            removed.add(cable)
    return frozenset(removed - down)


def _are_connected(fabric: Fabric, removed: Set[int], source: str, destination: str) -> bool:
    """Return whether packets can go from one switch to another without the removed cables."""
    seen, waiting = {source}, [source]
    while waiting and destination not in seen:
        for link in fabric.links_from[waiting.pop()]:
            neighbour = link.destination
            if link.index // 2 not in removed and neighbour in fabric.switch_index and neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return destination in seen
