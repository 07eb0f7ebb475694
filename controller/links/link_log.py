"""Log cables that are taken out of use or used again."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from controller.events import EventKind, LineBudget, log_event
from controller.links.link_health import DeadCable
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

_MAX_NAMES = 8
"""Cables, or others, named in one message; the others are counted."""
_LINES, _REFILL_S = 20, 2.0
"""So many changes at once are logged; then one in so many seconds, with all that has changed since."""


class LinkLog:
    """Logs which cables are used, whenever that changes; to be used in an event loop."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._budget = LineBudget(_LINES, _REFILL_S)
        self._told: Set[int] = frozenset()
        self._told_drained: Set[int] = frozenset()
        self._untold: tuple[Set[int], tuple[DeadCable, ...], Set[int]] | None = None

    def know(self, dead: Set[int], drained: Set[int]) -> None:
        """Take these dead links as told, and which of them are drained: they were on the fabric before."""
        self._told, self._told_drained = dead, drained

    def tell(self, dead: Set[int], dead_cables: Iterable[DeadCable], drained: Set[int]) -> None:
        """Log what has changed, now or soon; see ``link_changes``."""
        is_due, self._untold = self._untold is None, (dead, tuple(dead_cables), drained)
        if is_due:
            self._tell_untold()

    def _tell_untold(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._budget.has_one(loop.time()):
            loop.call_later(_REFILL_S, self._tell_untold)
            return
        assert self._untold is not None
        dead, dead_cables, drained = self._untold
        for change in link_changes(self._fabric, self._told, dead, dead_cables, drained, self._told_drained):
            self._budget.spend()
            log_event(_LOG, change.level, change.kind, "%s", change.message, cables=change.num_cables)
        self._told, self._told_drained, self._untold = dead, drained, None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Cables that are no longer used, or used again."""

    level: int
    """Of the log: information where operators have asked for it, and else a warning."""
    kind: EventKind
    message: str
    num_cables: int


def link_changes(
    fabric: Fabric,
    before: Set[int],
    after: Set[int],
    dead_cables: Iterable[DeadCable],
    drained: Set[int] = frozenset(),
    drained_before: Set[int] = frozenset(),
) -> Iterator[LinkChange]:
    """Describe the change from one set of dead links to another in up to four messages.

    Cables are named as in ``trainyard show links``, those that failed or work again before those that are drained:

        not used any longer: t0.0>a0 (down), t1.0>a0 (held)
        used again: t0.1>a1

    Args:
        fabric: The fabric.
        before: The dead links until now.
        after: The dead links from now on.
        dead_cables: The states of cables by now. A cable that works again meanwhile is not among them.
        drained: The dead links that operators have drained.
        drained_before: Those that they had drained until now.
    """
    failed = {cable.link: f" ({cable.state})" for cable in dead_cables}
    asked_for = {link for link in drained if link - link % 2 not in failed}
    states = dict.fromkeys(drained, " (drained)") | failed
    for level, left, back in (
        (logging.WARNING, after - before - asked_for, before - after - drained_before),
        (logging.INFO, asked_for & after - before, drained_before & before - after),
    ):
        if removed := _cables(left):
            names = [cable_name(fabric, cable) + states.get(cable, "") for cable in removed]
            yield LinkChange(level, EventKind.LINKS_LEFT, f"not used any longer: {listed(names)}", len(removed))
        if restored := _cables(back):
            names = [cable_name(fabric, cable) for cable in restored]
            yield LinkChange(level, EventKind.LINKS_BACK, f"used again: {listed(names)}", len(restored))


def _cables(links: Set[int]) -> list[int]:
    """Return the cables of links, each as its first direction."""
    return sorted(link for link in links if link % 2 == 0)


def cable_name(fabric: Fabric, link: int) -> str:
    """The name of a cable, given as its first direction: ``t0.0>a0``."""
    ends = fabric.links[link]
    return f"{ends.source}.{fabric.parallel_index(link)}>{ends.destination}"


def listed(names: Iterable[str]) -> str:
    """Names in a message: the first ones, and how many more there are."""
    names = [*names]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
