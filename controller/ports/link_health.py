"""Which links may be used, by what switches say of their ports and by how steady that was."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.ports.damping import Damping, Stability
from topologies.fabric import Fabric

PortStates = Mapping[str, Mapping[int, bool]]
"""Whether ports are up, by switch and number; a switch or port that is not there has not been heard of."""


class CableCondition(StrEnum):
    """Why a cable is not used."""

    DOWN = "down"
    HELD = "held"


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
    used at once too, unless damping holds it.
    """

    def __init__(self, fabric: Fabric, damping: Damping | None) -> None:
        self._cable_of = {
            (link.source, link.source_port): link.index // 2
            for link in fabric.links
            if link.source in fabric.switch_index
        }
        self._damping = damping
        self._down: frozenset[int] = frozenset()
        self._stability: dict[int, Stability] = {}

    def note(self, states: PortStates, now_s: float) -> None:
        """This is what all switches say now. Ports that no cable of the topology ends at are passed over."""
        down = frozenset(
            cable
            for switch, ports in states.items()
            for port, is_up in ports.items()
            if not is_up and (cable := self._cable_of.get((switch, port))) is not None
        )
        for cable in down - self._down:
            self._stability[cable] = self._stability.get(cable, Stability()).fall(now_s, self._damping)
        self._down = down

    def dead(self, now_s: float) -> frozenset[int]:
        """Links that nothing is to be led over."""
        cables = self._down | {cable for cable, known in self._stability.items() if known.is_held(now_s)}
        return frozenset(link for cable in cables for link in (2 * cable, 2 * cable + 1))

    def next_release_s(self, now_s: float) -> float | None:
        """When the next cable that is up is held no longer; None where none is held."""
        ends = (
            known.held_until_s
            for cable, known in self._stability.items()
            if cable not in self._down and known.is_held(now_s)
        )
        return min(ends, default=None)

    def unused(self, now_s: float) -> tuple[CableHealth, ...]:
        """The cables that are not used, in the topology's order."""
        return tuple(
            CableHealth(
                2 * cable,
                CableCondition.DOWN if cable in self._down else CableCondition.HELD,
                known.fell_s,
                known.falls,
                known.held_until_s - now_s if known.is_held(now_s) else None,
            )
            for cable, known in sorted(self._stability.items())
            if cable in self._down or known.is_held(now_s)
        )
