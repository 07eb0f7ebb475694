"""Which cables can be left alone without cutting anybody off: those between switches that reach each other without."""

from collections.abc import Iterable, Set

from topologies.fabric import Fabric


def avoidable(fabric: Fabric, down: Set[int], doubted: Iterable[int]) -> frozenset[int]:
    """Cables of ``doubted`` that are to be left alone where those that are ``down`` are not there.

    The lower number first: one whose ends reach each other by none that is left is used, as it may be better than
    nothing. A host's own cable always is.
    """
    left_out = set(down)
    for cable in sorted(set(doubted) - down):
        ends = fabric.cables[cable].ends
        if fabric.switch_index.keys() >= set(ends) and _reach(fabric, left_out | {cable}, *ends):
            left_out.add(cable)
    return frozenset(left_out - down)


def _reach(fabric: Fabric, left_out: Set[int], source: str, destination: str) -> bool:
    """Whether packets can go from one switch to another without these cables."""
    seen, waiting = {source}, [source]
    while waiting and destination not in seen:
        for link in fabric.links_from[waiting.pop()]:
            neighbour = link.destination
            if link.index // 2 not in left_out and neighbour in fabric.switch_index and neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return destination in seen
