"""Fluid flows whose packets are lost: who waits, and until when its sender tries again, as on the emulator."""

from collections.abc import Mapping, Set

from emulator.engine.transport import TIMEOUT_PS
from experiments.scenarios.ways import Way
from simulator.fluid import NEVER_PS


def next_try_ps(since_ps: int, now_ps: int) -> int:
    """When a sender that has got nothing through since a time tries again, now or later.

    Now, if that is the time: packets are under way for a while, and find what switches are told meanwhile.
    """
    return since_ps - (since_ps - now_ps) // TIMEOUT_PS * TIMEOUT_PS


class Stalls:
    """The flows under way that have got nothing through since a time; by number, as their carrier counts them."""

    def __init__(self) -> None:
        self._since_ps: dict[int, int] = {}
        self._try_ps: dict[int, int] = {}

    def renumber(self, new: Mapping[int, int]) -> None:
        """Flows have other numbers from now on; ``new`` has the old one of each."""
        self._since_ps = {number: self._since_ps[old] for number, old in new.items() if old in self._since_ps}
        self._try_ps = {number: self._try_ps[old] for number, old in new.items() if old in self._try_ps}

    @property
    def waiting(self) -> Set[int]:
        """Those that wait."""
        return self._since_ps.keys()

    @property
    def next_try_ps(self) -> int:
        """When the next of them tries again on a way that is there; NEVER_PS where none will."""
        return min(self._try_ps.values(), default=NEVER_PS)

    def take_trying(self, now_ps: int) -> list[int]:
        """Take out those that try again now."""
        trying = [number for number, try_ps in self._try_ps.items() if try_ps <= now_ps]
        for number in trying:
            del self._since_ps[number], self._try_ps[number]
        return trying

    def look(self, ways: Mapping[int, Way], now_ps: int) -> list[int]:
        """See who waits of those that are under way, on these ways; returns those that have begun to."""
        stalled = []
        for number, way in ways.items():
            if way.is_lost:
                self._try_ps.pop(number, None)
                if number not in self._since_ps:
                    self._since_ps[number] = now_ps
                    stalled.append(number)
            elif number in self._since_ps:
                self._try_ps[number] = next_try_ps(self._since_ps[number], now_ps)
        return stalled
