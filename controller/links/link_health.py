"""Decide which links may be used, from port states, flap damping and the links that lose all probes."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from controller.links.damping import Damping, FlapHistory
from controller.links.removable_cables import removable_cables
from topologies.fabric import Fabric

PROBATION_S = 10.0
"""How long a silent cable is tried again: enough for hosts to find its paths, or to find that it still fails."""

_RAREST_PROBATION = 32
"""At least one in so many periods is a probation, however long a cable has been silent."""

LONGEST_UNTRIED_S = (_RAREST_PROBATION - 1) * PROBATION_S
"""The longest time between two probations of a silent cable."""

PortStates = Mapping[str, Mapping[int, bool]]
"""Whether ports are up, by switch and port number; unknown switches and ports are absent."""


class LinkState(StrEnum):
    """Why a link is dead, that is, why nothing is routed over it."""

    DOWN = "down"
    """A switch says that the port at one of its ends is down."""
    HELD = "held"
    """It is up, but failed so often that damping holds it."""
    SILENT = "silent"
    """It is up, but loses all probes."""


@dataclass(frozen=True, slots=True)
class DeadCable:
    """A cable over which nothing is routed.

    ``link`` is its first direction, ``fell_s`` when it last fell, and ``falls`` how often it did. ``held_for_s`` is the
    rest of its hold, None if it is not held.
    """

    link: int
    state: LinkState
    fell_s: float
    falls: int
    held_for_s: float | None


class LinkHealth:
    """The dead links of a fabric: both directions of every cable that is down, held or silent.

    A cable is down if the port at either end is; ports of unknown state count as up. A cable that goes down is dead at
    once, and used again as soon as it comes up, unless damping holds it. A silent cable is tried again from time to
    time, and as soon as it may be used after it came up. Held and silent cables stay in use where switches would be cut
    off without them.
    """

    def __init__(self, fabric: Fabric, damping: Damping | None) -> None:
        self._cable_of = {
            (link.source, link.source_port): link.index // 2
            for link in fabric.links
            if link.source in fabric.switch_index
        }
        self._fabric = fabric
        self._damping = damping
        self._down: frozenset[int] = frozenset()
        self._histories: dict[int, FlapHistory] = {}
        self._silent_since_s: dict[int, float] = {}
        self._up_since_s: dict[int, float] = {}
        """When silent cables came up, those that did while silent."""
        self._removable_for: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        self._removable: frozenset[int] = frozenset()
        """The removable ones of the unwanted cables in ``_removable_for``, which also has those that are down."""

    def set_port_states(self, states: PortStates, now_s: float) -> None:
        """Set the states of all ports; ports at which no cable of the topology ends are ignored."""
        down = frozenset(
            cable
            for switch, ports in states.items()
            for port, is_up in ports.items()
            if not is_up and (cable := self._cable_of.get((switch, port))) is not None
        )
        for cable in down - self._down:
            self._record_fall(cable, now_s)
        for cable in (self._down - down) & self._silent_since_s.keys():
            self._silent_since_s[cable] = self._up_since_s[cable] = now_s
        self._down = down

    def set_silent_links(self, links: Set[int], now_s: float) -> None:
        """Set the links that lose all probes."""
        cables = {link // 2 for link in links}
        for cable in cables - self._silent_since_s.keys():
            self._record_fall(cable, now_s)
        self._silent_since_s = {cable: self._silent_since_s.get(cable, now_s) for cable in cables}
        self._up_since_s = {cable: up_s for cable, up_s in self._up_since_s.items() if cable in cables}

    def dead_links(self, now_s: float) -> frozenset[int]:
        """Return the links over which nothing may be routed."""
        return links_of(self._down | self._unused_while_up(now_s))

    def dead_cables(self, now_s: float) -> tuple[DeadCable, ...]:
        """Return the cables of the dead links, in the topology's order."""
        unused_while_up = self._unused_while_up(now_s)
        return tuple(
            DeadCable(
                2 * cable,
                self._state(cable, now_s),
                history.fell_s,
                history.falls,
                history.held_until_s - now_s if history.is_held(now_s) else None,
            )
            for cable, history in sorted(self._histories.items())
            if cable in self._down or cable in unused_while_up
        )

    def next_release_s(self, now_s: float) -> float | None:
        """Return when the next hold of a cable that is up ends, or the next probation begins or ends."""
        ends = [
            history.held_until_s
            for cable, history in self._histories.items()
            if cable not in self._down and history.is_held(now_s)
        ]
        ends += [self._probation(cable, now_s)[1] for cable in self._silent_since_s]
        return min(ends, default=None)

    def _record_fall(self, cable: int, now_s: float) -> None:
        self._histories[cable] = self._histories.get(cable, FlapHistory()).fall(now_s, self._damping)

    def _unused_while_up(self, now_s: float) -> frozenset[int]:
        """Return the cables that are up but held or silent, without those that somebody needs."""
        held = frozenset(cable for cable, history in self._histories.items() if history.is_held(now_s))
        silent = frozenset(cable for cable in self._silent_since_s if not self._probation(cable, now_s)[0])
        if (self._down, held | silent) != self._removable_for:
            self._removable_for = self._down, held | silent
            self._removable = removable_cables(self._fabric, *self._removable_for)
        return self._removable

    def _probation(self, cable: int, now_s: float) -> tuple[bool, float]:
        """Return whether a silent cable is on probation, and until when that stays so."""
        if cable in self._up_since_s:
            usable_s = max(self._up_since_s[cable], self._histories[cable].held_until_s)
            if usable_s <= now_s < usable_s + PROBATION_S:
                return True, usable_s + PROBATION_S
        return probation(self._silent_since_s[cable], now_s)

    def _state(self, cable: int, now_s: float) -> LinkState:
        if cable in self._down:
            return LinkState.DOWN
        return LinkState.HELD if self._histories[cable].is_held(now_s) else LinkState.SILENT


def links_of(cables: Iterable[int]) -> frozenset[int]:
    """Return both directions of cables."""
    return frozenset(link for cable in cables for link in (2 * cable, 2 * cable + 1))


def probation(silent_since_s: float, now_s: float) -> tuple[bool, float]:
    """Return whether a cable that has been silent since a time is on probation, and until when that stays so.

    Without probation nobody would find out that the cable works again, as nothing is routed over it. It is left alone
    for at least one period and tried for one, ever more rarely. All cables share the same periods, so that cables that
    are of use only together are tried together, whenever each fell silent.
    """
    first, period = int(silent_since_s // PROBATION_S), int(now_s // PROBATION_S)
    is_on_probation, following = _is_probation(first, period), period + 1
    while _is_probation(first, following) == is_on_probation:
        following += 1
    return is_on_probation, following * PROBATION_S


def _is_probation(first: int, period: int) -> bool:
    """Return whether a cable that fell silent in the period ``first`` is tried in this one."""
    age = period - first
    return age > 1 and period % min(1 << (age.bit_length() - 1), _RAREST_PROBATION) == 0
