"""A copy of a fabric's engine, which runs on its own and leaves the fabric as it is."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from emulator.engine import state as s
from emulator.engine.build import grown_packets
from emulator.engine.events import FIRST_KEY
from emulator.engine.packets import take_captured
from emulator.engine.recording import without_records

Loop = Callable[[s.State, NDArray[np.uint64], int], None]
"""An event loop: it processes events up to and including a time."""


class Snapshot:
    """The arrays of a fabric at one moment, copied; ``memory`` is that of the switches. It records no packets."""

    def __init__(self, state: s.State, memory: NDArray[np.uint64]) -> None:
        state = without_records(state)
        words = state.words.copy()
        copied = {name: array.copy() for name, array in state._asdict().items() if name not in _VIEWS}
        self.state = s.State(
            **copied,
            words=words,
            packets=words.view(np.int64).reshape(state.packets.shape),
            octets=words.view(np.uint8),
        )
        self.memory = memory.copy()

    @property
    def now_ps(self) -> int:
        """Time of the copy."""
        return int(self.state.scalars[s.NOW_PS])

    @property
    def next_event_ps(self) -> int:
        """Time of the next event."""
        return int(min(self.state.calendar[FIRST_KEY], self.state.timers[FIRST_KEY])) >> 1

    def make_room(self) -> None:
        """Grow what a single event might overfill, and forget what has come to hosts and into the trace."""
        self.state.scalars[[s.COMPLETIONS, s.TRACED]] = 0
        take_captured(self.state)
        if self.state.scalars[s.FREE_PACKETS] < s.RESERVE and not len(self.state.wires):
            self.state = grown_packets(self.state)

    def run(self, loop: Loop, until_ps: int) -> None:
        """Advance to a time."""
        while True:
            self.make_room()
            self.state.scalars[s.IDLE_UNTIL_PS] = s.NONE
            loop(self.state, self.memory, until_ps)
            if self.state.scalars[s.IDLE_UNTIL_PS] == until_ps:
                return


_VIEWS = frozenset({"words", "packets", "octets"})
