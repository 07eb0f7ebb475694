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
        first, second = fabric.cables[cable].ends
        are_switches = fabric.switch_index.keys() >= {first, second}
        if are_switches and second in _reached_from(fabric, removed | {cable}, first, second):
            removed.add(cable)
    return frozenset(removed - down)


def num_parts(fabric: Fabric, removed: Set[int]) -> int:
    """Return into how many parts the switches with hosts fall that reach each other without the removed cables.

    A switch has hosts only as far as their own cables are left.
    """
    leaving = (link for host in fabric.hosts for link in fabric.links_from[host])
    return len(parts(fabric, removed, {link.destination for link in leaving if link.index // 2 not in removed}))


def parts(fabric: Fabric, removed: Set[int], switches: Set[str]) -> list[set[str]]:
    """Return the parts into which switches fall without the removed cables, the one with the first of them first."""
    found, waiting = [], frozenset(switches)
    while waiting:
        part = _reached_from(fabric, removed, min(waiting, key=fabric.switch_index.__getitem__))
        waiting -= part
        found.append(part)
    return found


def _reached_from(fabric: Fabric, removed: Set[int], first: str, wanted: str | None = None) -> set[str]:
    """Return the switches that packets from one of them reach without the removed cables, itself included.

    The search ends where it has found the ``wanted`` one.
    """
    seen, waiting = {first}, [first]
    while waiting and wanted not in seen:
        for link in fabric.links_from[waiting.pop()]:
            neighbour = link.destination
            if link.index // 2 not in removed and neighbour in fabric.switch_index and neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return seen
