"""What the controller's log says of cables that are used no longer, or again."""

from collections.abc import Collection, Iterable, Iterator, Set

from controller.links.link_health import CableHealth
from topologies.fabric import Fabric

_MOST_NAMED = 8


def cable_news(fabric: Fabric, before: Set[int], dead: Set[int], unused: Iterable[CableHealth]) -> Iterator[str]:
    """What has changed between two sets of dead links, named as ``trainyard show links`` does: up to two lines."""
    # One that has come back meanwhile has none.
    conditions = {cable.link: f" ({cable.condition})" for cable in unused}
    if gone := _cables(dead - before):
        yield f"not used any longer: {_listed([_name(fabric, cable) + conditions.get(cable, '') for cable in gone])}"
    if back := _cables(before - dead):
        yield f"used again: {_listed([_name(fabric, cable) for cable in back])}"


def _cables(links: Set[int]) -> list[int]:
    """Their cables, each by its first direction."""
    return sorted(link for link in links if link % 2 == 0)


def _name(fabric: Fabric, link: int) -> str:
    ends = fabric.links[link]
    return f"{ends.source}.{fabric.parallel_index(link)}>{ends.destination}"


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join([*names][:_MOST_NAMED]) + more
