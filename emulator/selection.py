"""Lists of actions that a selector picks from, in the memory that compiled code reads."""

from dataclasses import dataclass

from emulator.memory import Arena
from emulator.ports import Ports


@dataclass(frozen=True, slots=True)
class Candidate:
    """An action at offset ``place``; with a ``watch_port`` it is picked only while that port is up."""

    place: int
    watch_port: int | None


class Selection:
    """A block of words: the number of live candidates, then the offset of each, in order.

    Without live candidates it is an empty group, as on BMv2: packets hit the entry and no action is executed.
    """

    def __init__(self, arena: Arena, ports: Ports) -> None:
        self.place = 0
        self._arena = arena
        self._ports = ports
        self._num_words = 0
        self._candidates: tuple[Candidate, ...] = ()

    def replace(self, candidates: tuple[Candidate, ...]) -> None:
        """Set the candidates; the block moves if it has to grow."""
        if self._num_words < 1 + len(candidates):
            self.free()
            self._num_words = 1 + len(candidates)
            self.place = self._arena.allocate(self._num_words)
        self._candidates = candidates
        self._write()

    def port_changed(self, port: int) -> None:
        """Recount the live candidates if one watches this port."""
        if any(candidate.watch_port == port for candidate in self._candidates):
            self._write()

    def free(self) -> None:
        """Free the block."""
        if self._num_words:
            self._arena.free(self.place, self._num_words)
            self._num_words = 0

    def _write(self) -> None:
        live = [candidate.place for candidate in self._candidates if self._is_live(candidate)]
        self._arena.words[self.place : self.place + 1 + len(live)] = (len(live), *live)

    def _is_live(self, candidate: Candidate) -> bool:
        return candidate.watch_port is None or self._ports.is_up(candidate.watch_port)
