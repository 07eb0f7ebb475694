"""Decide which links may be used, from port states, flap damping and the links that lose all probes."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from controller.links.damping import Damping, FlapHistory
from controller.links.removable_cables import num_parts, removable_cables
from topologies.fabric import Fabric

_KnownT = TypeVar("_KnownT")

PROBATION_S = 10.0
"""How long a silent cable is tried again: enough for hosts to find its paths, or to find that it still fails."""

_RAREST_PROBATION = 32
"""At least one in so many periods is a probation, however long a cable has been silent."""

CONFIRMATION_S = 5.0
"""How long a cable that has come up may wait until it is confirmed: longer than it takes to find that it is not."""

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
    MISPLACED = "misplaced"
    """It is up, but ends at another port than the topology says."""
    UNHEARD = "unheard"
    """It is up, but what one end sends does not arrive at the other."""


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


@dataclass(frozen=True, slots=True)
class DrainedCables:
    """Cables that are to be left alone together: also where they are needed if ``is_forced``, otherwise only if not."""

    cables: frozenset[int]
    is_forced: bool = False


class LinkHealth:
    """The dead links of a fabric: both directions of every cable that is down, held, silent or drained.

    A cable is down if the port at either end is; ports of unknown state count as up. A cable that goes down is dead at
    once, and used again as soon as it comes up, unless damping holds it. A silent cable is tried again from time to
    time, and as soon as it may be used after it came up. A misplaced cable is as one that is down: what is sent over it
    goes astray. Held, silent and unheard cables stay in use where switches would be cut off without them. Drained ones
    stay in use, or come back, where hosts would lose each other without them, unless the drain is forced.
    """

    def __init__(self, fabric: Fabric, damping: Damping | None) -> None:
        self._cable_of = {
            (link.source, link.source_port): link.index // 2
            for link in fabric.links
            if link.source in fabric.switch_index
        }
        self._fabric = fabric
        self._damping = damping
        self._ports_down: frozenset[int] = frozenset()
        self._misplaced: frozenset[int] = frozenset()
        self._unheard: frozenset[int] = frozenset()
        self._ever_confirmed: frozenset[int] = frozenset()
        self._unconfirmed_until_s: dict[int, float] = {}
        """Cables that have come up and are to be confirmed first, and until when that is waited for."""
        self._down: frozenset[int] = frozenset()
        """The cables with a port that is down, and misplaced ones."""
        self._histories: dict[int, FlapHistory] = {}
        self._silent_since_s: dict[int, float] = {}
        self._up_since_s: dict[int, float] = {}
        """When silent cables came up, those that did while silent."""
        self._removable_for: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        self._removable: frozenset[int] = frozenset()
        """The removable ones of the unwanted cables in ``_removable_for``, which also has those that are down."""
        self._drains: tuple[DrainedCables, ...] = ()
        self._drained_for: tuple[frozenset[int], frozenset[int], tuple[DrainedCables, ...]] = (frozenset(),) * 2 + ((),)
        self._drained: frozenset[int] = frozenset()
        """The drained cables that can be left alone, of ``_drains`` and given those that cannot be relied on."""

    def take_over(self, before: "LinkHealth", cables: Mapping[int, int]) -> None:
        """Go on with what was known of another fabric's cables, those that this one has too.

        ``cables`` are these, by their number there. To be called before anything is set here.
        """

        def of_here(numbers: Iterable[int]) -> frozenset[int]:
            return frozenset(cables[cable] for cable in numbers if cable in cables)

        def by_number_here(known: Mapping[int, _KnownT]) -> dict[int, _KnownT]:
            return {cables[cable]: each for cable, each in known.items() if cable in cables}

        self._ports_down, self._misplaced = of_here(before._ports_down), of_here(before._misplaced)
        self._unheard, self._ever_confirmed = of_here(before._unheard), of_here(before._ever_confirmed)
        self._unconfirmed_until_s = by_number_here(before._unconfirmed_until_s)
        self._histories = by_number_here(before._histories)
        self._silent_since_s = by_number_here(before._silent_since_s)
        self._up_since_s = by_number_here(before._up_since_s)
        self._down = self._ports_down | self._misplaced

    def set_damping(self, damping: Damping | None) -> None:
        """Damp by other parameters from now on; holds go on until their ends."""
        self._damping = damping

    def set_drains(self, drains: Iterable[DrainedCables]) -> None:
        """Set the drains, those that come first in their order."""
        self._drains = tuple(drains)

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
        for cable in (self._ports_down - down) & self._ever_confirmed:
            self._unconfirmed_until_s[cable] = now_s + CONFIRMATION_S
        for cable in down & self._unconfirmed_until_s.keys():
            del self._unconfirmed_until_s[cable]
        self._ports_down = down
        self._change_down(now_s)

    def set_found_cables(
        self, misplaced: frozenset[int], unheard: frozenset[int], confirmed: Set[int], now_s: float
    ) -> None:
        """Set the cables between switches that end elsewhere, that nothing is heard over, and that are right.

        A cable that was once confirmed and comes up again has to be confirmed again: it may be another one by then.
        """
        for cable in (misplaced | unheard) - self._misplaced - self._unheard - self._down:
            self._histories[cable] = self._histories.get(cable, FlapHistory()).outage(now_s, self._damping)
        self._misplaced, self._unheard = misplaced, unheard
        self._ever_confirmed |= confirmed
        for cable in confirmed & self._unconfirmed_until_s.keys():
            del self._unconfirmed_until_s[cable]
        self._change_down(now_s)

    def _change_down(self, now_s: float) -> None:
        before, self._down = self._down, self._ports_down | self._misplaced
        for cable in (before - self._down) & self._silent_since_s.keys():
            self._silent_since_s[cable] = self._up_since_s[cable] = now_s

    def set_silent_links(self, links: Set[int], now_s: float) -> None:
        """Set the links that lose all probes."""
        cables = {link // 2 for link in links}
        for cable in cables - self._silent_since_s.keys():
            self._record_fall(cable, now_s)
        self._silent_since_s = {cable: self._silent_since_s.get(cable, now_s) for cable in cables}
        self._up_since_s = {cable: up_s for cable, up_s in self._up_since_s.items() if cable in cables}

    @property
    def links_down(self) -> frozenset[int]:
        """Return the links of which a switch says that a port at one of the ends is down."""
        return links_of(self._ports_down)

    def dead_links(self, now_s: float) -> frozenset[int]:
        """Return the links over which nothing may be routed."""
        return self.failed_links(now_s) | self.drained_links(now_s)

    def failed_links(self, now_s: float) -> frozenset[int]:
        """Return those of them that are down, held or silent."""
        return links_of(self._down | self._unused_while_up(now_s))

    def drained_links(self, now_s: float) -> frozenset[int]:
        """Return those of them that are drained and nothing else."""
        return links_of(self._left_alone(now_s) - self._down - self._unused_while_up(now_s))

    def is_needed(self, drain: DrainedCables, now_s: float) -> bool:
        """Return whether hosts would lose each other without cables that are drained, so that they are used still."""
        return not drain.cables <= self._left_alone(now_s) | self._down

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
        """Return when the next hold or wait for confirmation ends, or the next probation begins or ends."""
        ends = [
            history.held_until_s
            for cable, history in self._histories.items()
            if cable not in self._down and history.is_held(now_s)
        ]
        ends += [self._probation(cable, now_s)[1] for cable in self._silent_since_s]
        ends += [until_s for until_s in self._unconfirmed_until_s.values() if now_s < until_s]
        return min(ends, default=None)

    def _record_fall(self, cable: int, now_s: float) -> None:
        self._histories[cable] = self._histories.get(cable, FlapHistory()).fall(now_s, self._damping)

    def _unused_while_up(self, now_s: float) -> frozenset[int]:
        """Return the cables that are up and should not be used, without those that somebody needs."""
        silent = frozenset(cable for cable in self._silent_since_s if not self._probation(cable, now_s)[0])
        unwanted = silent | self._held_or_unconfirmed(now_s)
        gone = self._down | self._left_alone(now_s)
        if (gone, unwanted) != self._removable_for:
            self._removable_for = gone, unwanted
            self._removable = removable_cables(self._fabric, *self._removable_for)
        return self._removable

    def _held_or_unconfirmed(self, now_s: float) -> frozenset[int]:
        """Return the cables that are held, unheard, or wait to be confirmed."""
        held = (cable for cable, history in self._histories.items() if history.is_held(now_s))
        awaited = (cable for cable, until_s in self._unconfirmed_until_s.items() if now_s < until_s)
        return self._unheard.union(held, awaited)

    def _left_alone(self, now_s: float) -> frozenset[int]:
        """Return the drained cables that are not needed.

        Nobody can rely on cables that are held, silent, on probation or unheard, or wait to be confirmed.
        """
        if not self._drains:
            return frozenset()
        state = self._down, self._held_or_unconfirmed(now_s) | self._silent_since_s.keys(), self._drains
        if state != self._drained_for:
            self._drained_for = state
            self._drained = dispensable_drains(self._fabric, *state)
        return self._drained

    def _probation(self, cable: int, now_s: float) -> tuple[bool, float]:
        """Return whether a silent cable is on probation, and until when that stays so."""
        if cable in self._up_since_s:
            usable_s = max(self._up_since_s[cable], self._histories[cable].held_until_s)
            if usable_s <= now_s < usable_s + PROBATION_S:
                return True, usable_s + PROBATION_S
        return probation(self._silent_since_s[cable], now_s)

    def _state(self, cable: int, now_s: float) -> LinkState:
        if cable in self._down:
            return LinkState.DOWN if cable in self._ports_down else LinkState.MISPLACED
        if cable in self._unheard or now_s < self._unconfirmed_until_s.get(cable, now_s):
            return LinkState.UNHEARD
        return LinkState.HELD if self._histories[cable].is_held(now_s) else LinkState.SILENT


def dispensable_drains(
    fabric: Fabric, down: Set[int], doubtful: Set[int], drains: Iterable[DrainedCables]
) -> frozenset[int]:
    """Return the cables of forced drains and, one drain after the other, of those without which no hosts are cut off.

    ``doubtful`` cables are up, but cannot be relied on.
    """
    drains = tuple(drains)
    alone = frozenset[int]().union(*(drain.cables for drain in drains if drain.is_forced))
    for drain in drains:
        gone = down | doubtful | alone
        if not drain.cables <= gone and num_parts(fabric, gone | drain.cables) > num_parts(fabric, gone):
            continue
        alone |= drain.cables
    return alone


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
