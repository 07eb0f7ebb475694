"""Write log messages about cables that are taken out of use or used again."""

from collections.abc import Collection, Iterable, Iterator, Set

from controller.links.link_health import DeadCable
from topologies.fabric import Fabric

_MAX_NAMES = 8
"""Cables named in one message; the others are counted."""


def change_messages(
    fabric: Fabric, before: Set[int], after: Set[int], dead_cables: Iterable[DeadCable]
) -> Iterator[str]:
    """Describe the change from one set of dead links to another in up to two messages.

    Cables are named as in ``trainyard show links``:

        not used any longer: t0.0>a0 (down), t1.0>a0 (held)
        used again: t0.1>a1

    Args:
        fabric: The fabric.
        before: The dead links until now.
        after: The dead links from now on.
        dead_cables: The states of cables by now. A cable that works again meanwhile is not among them.
    """
    states = {cable.link: f" ({cable.state})" for cable in dead_cables}
    if removed := _cables(after - before):
        yield f"not used any longer: {_listed([_name(fabric, cable) + states.get(cable, '') for cable in removed])}"
    if restored := _cables(before - after):
        yield f"used again: {_listed([_name(fabric, cable) for cable in restored])}"


def _cables(links: Set[int]) -> list[int]:
    """Return the cables of links, each as its first direction."""
    return sorted(link for link in links if link % 2 == 0)


def _name(fabric: Fabric, link: int) -> str:
    ends = fabric.links[link]
    return f"{ends.source}.{fabric.parallel_index(link)}>{ends.destination}"


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join([*names][:_MAX_NAMES]) + more
