"""Which links may be used, by what switches say of their ports, by how steady that was, and by what probes miss."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from controller.links.damping import Damping, Stability
from controller.links.probation import TRIAL_S, trial
from controller.links.removable_cables import avoidable
from topologies.fabric import Fabric

PortStates = Mapping[str, Mapping[int, bool]]
"""Whether ports are up, by switch and number; a switch or port that is not there has not been heard of."""


class CableCondition(StrEnum):
    """Why a cable is not used."""

    DOWN = "down"
    HELD = "held"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class CableHealth:
    """A cable that is not used: the link that is its first direction, since when it is down or was last, how often.

    ``held_for_s`` is for how long it is held yet, if at all; one that is up is then used again.
    """

    link: int
    condition: CableCondition
    fell_s: float
    falls: int
    held_for_s: float | None


class LinkHealth:
    """The links that are dead: both directions of a cable that is down by either of its ends, or held for flapping.

    A port that nobody has heard of speaks neither way. A cable that goes down is dead at once; one that comes up is
    used at once too, unless damping holds it. One that probes do not come by is dead as well, but when it is tried
    again: as soon as it may be used where it has come up since. Neither is where that would cut anybody off.
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
        self._stability: dict[int, Stability] = {}
        self._silent_since_s: dict[int, float] = {}
        self._up_s: dict[int, float] = {}
        """When cables came up that were silent already."""
        self._doubted_beside: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        self._avoided: frozenset[int] = frozenset()
        """What is left out where so is down and doubted."""

    def note(self, states: PortStates, now_s: float) -> None:
        """This is what all switches say now. Ports that no cable of the topology ends at are passed over."""
        down = frozenset(
            cable
            for switch, ports in states.items()
            for port, is_up in ports.items()
            if not is_up and (cable := self._cable_of.get((switch, port))) is not None
        )
        for cable in down - self._down:
            self._fall(cable, now_s)
        for cable in (self._down - down) & self._silent_since_s.keys():
            self._silent_since_s[cable] = self._up_s[cable] = now_s
        self._down = down

    def note_silent(self, links: Set[int], now_s: float) -> None:
        """By these links probes have ceased to come. They are dead too, but now and then tried again."""
        cables = {link // 2 for link in links}
        for cable in cables - self._silent_since_s.keys():
            self._fall(cable, now_s)
        self._silent_since_s = {cable: self._silent_since_s.get(cable, now_s) for cable in cables}
        self._up_s = {cable: up_s for cable, up_s in self._up_s.items() if cable in cables}

    def dead(self, now_s: float) -> frozenset[int]:
        """Links that nothing is to be led over."""
        return links_of(self._down | self._left_out(now_s))

    def _fall(self, cable: int, now_s: float) -> None:
        self._stability[cable] = self._stability.get(cable, Stability()).fall(now_s, self._damping)

    def next_release_s(self, now_s: float) -> float | None:
        """When the next cable that is up is held no longer, or tried or left again; None where there is none."""
        ends = [
            known.held_until_s
            for cable, known in self._stability.items()
            if cable not in self._down and known.is_held(now_s)
        ]
        ends += [self._trial(cable, now_s)[1] for cable in self._silent_since_s]
        return min(ends, default=None)

    def unused(self, now_s: float) -> tuple[CableHealth, ...]:
        """The cables that are not used, in the topology's order."""
        left_out = self._left_out(now_s)
        return tuple(
            CableHealth(
                2 * cable,
                self._condition(cable, now_s),
                known.fell_s,
                known.falls,
                known.held_until_s - now_s if known.is_held(now_s) else None,
            )
            for cable, known in sorted(self._stability.items())
            if cable in self._down or cable in left_out
        )

    def _left_out(self, now_s: float) -> frozenset[int]:
        """Cables that are up, and held or silent."""
        held = frozenset(cable for cable, known in self._stability.items() if known.is_held(now_s))
        silent = frozenset(cable for cable in self._silent_since_s if not self._trial(cable, now_s)[0])
        if (self._down, held | silent) != self._doubted_beside:
            self._doubted_beside = self._down, held | silent
            self._avoided = avoidable(self._fabric, *self._doubted_beside)
        return self._avoided

    def _trial(self, cable: int, now_s: float) -> tuple[bool, float]:
        """Whether a silent cable is on trial, and until when that stays so."""
        if cable in self._up_s:
            usable_s = max(self._up_s[cable], self._stability[cable].held_until_s)
            if usable_s <= now_s < usable_s + TRIAL_S:
                return True, usable_s + TRIAL_S
        return trial(self._silent_since_s[cable], now_s)

    def _condition(self, cable: int, now_s: float) -> CableCondition:
        if cable in self._down:
            return CableCondition.DOWN
        return CableCondition.HELD if self._stability[cable].is_held(now_s) else CableCondition.SILENT


def links_of(cables: Iterable[int]) -> frozenset[int]:
    """Both directions of cables."""
    return frozenset(link for cable in cables for link in (2 * cable, 2 * cable + 1))
