"""The engine's arrays of a fabric: a state for each part, of which every core runs one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.engine import state as s
from emulator.engine.border import CRITICAL_HOPS
from emulator.engine.build import FLOW_ARRAYS, grown_flows, grown_packets, with_borders
from emulator.engine.mailboxes import has_mail
from emulator.engine.recording import with_records
from emulator.engine.windows import next_event_ps
from emulator.observations import Completion, Drops
from emulator.part_threads import PartThreads
from emulator.partition import Partition
from emulator.snapshot import Loop
from topologies.fabric import Fabric


class Parts:
    """States of a fabric's parts, and the threads that run them; on one core there is one part and no thread.

    Args:
        fabric: The topology.
        partition: How its switches are divided.
        states: For each part a state of the whole fabric.
        run_part: The event loop of the program of all switches, for threads; None where there is one part.
    """

    def __init__(
        self, fabric: Fabric, partition: Partition, states: Sequence[s.State], run_part: Callable[..., Any] | None
    ) -> None:
        self._fabric = fabric
        self._partition = partition
        self.states = with_borders(states, partition)
        self._threads = PartThreads(run_part) if run_part else None

    @property
    def first(self) -> s.State:
        """State of the first part, which has what all parts share."""
        return self.states[0]

    @first.setter
    def first(self, state: s.State) -> None:
        self.states[0] = state

    def with_source(self, link: int) -> s.State:
        """Return the state of the part in which a link of the fabric begins."""
        return self.states[self._partition.of_source(self._fabric.links[link])]

    def with_destination(self, link: int) -> s.State:
        """Return the state of the part in which a link ends; it may be that from a switch's control plane."""
        num_links = len(self._fabric.links)
        if link < num_links:
            return self.states[self._partition.of_destination(self._fabric.links[link])]
        switch = self._fabric.switches[(link - num_links) // 2]
        return self.states[self._partition.part[switch]]

    # ---- time -------------------------------------------------------------------------------------------------------

    @property
    def now_ps(self) -> int:
        """Current virtual time."""
        return int(self.first.scalars[s.NOW_PS])

    @property
    def next_event_ps(self) -> int:
        """Time of the next event in any part."""
        return next_event_ps(self.states)

    def run(self, loop: Loop, memory: NDArray[np.uint64], until_ps: int) -> None:
        """Advance all parts, by ``loop`` where there is one part and by the threads' loop where there are more."""
        if self._threads is None:
            loop(self.first, memory, until_ps)
        else:
            self._threads.run(self.states, memory, until_ps)

    def take_completions(self) -> tuple[Completion, ...]:
        """Return the completions of the moment; all parts are there then."""
        for state in self.states:
            completed = int(state.scalars[s.COMPLETIONS])
            if completed:
                state.scalars[s.COMPLETIONS] = 0
                for other in self.states:
                    other.scalars[s.NOW_PS] = state.scalars[s.NOW_PS]
                return tuple(Completion(*row) for row in state.completions[:completed].tolist())
        return ()

    # ---- room -------------------------------------------------------------------------------------------------------

    def grow_packets(self) -> None:
        """Have room in every part for the packets of a single event."""
        for part, state in enumerate(self.states):
            if state.scalars[s.FREE_PACKETS] < s.RESERVE:
                self.states[part] = grown_packets(state)

    def grow_flows(self) -> None:
        """Have room for twice as many flows."""
        first = grown_flows(self.first)
        grown = [first, *(grown_flows(state) for state in self.states[1:])]
        shared = {name: getattr(first, name) for name in FLOW_ARRAYS}
        self.states = [state._replace(**shared) for state in grown]

    def keep_records(self) -> None:
        """Have the engine keep the packets at ports (``emulator.engine.recording``)."""
        self.states = [with_records(state) for state in self.states]

    # ---- counts -----------------------------------------------------------------------------------------------------

    @property
    def is_at_rest(self) -> bool:
        """Whether no packet is anywhere in the fabric."""
        is_free = all(int(state.scalars[s.FREE_PACKETS]) == len(state.packets) for state in self.states)
        return is_free and not has_mail(self.states)

    @property
    def packet_hops(self) -> tuple[int, ...]:
        """Of each part, the number of packets that switches have taken from a queue so far."""
        return tuple(int(state.scalars[s.HOPS]) for state in self.states)

    @property
    def critical_packet_hops(self) -> int:
        """The packet-hops of the part with the most between two meetings of all, summed."""
        return int(self.first.border[CRITICAL_HOPS]) if self._threads else sum(self.packet_hops)

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The kernel's numbers of the threads."""
        return self._threads.thread_ids if self._threads else ()

    @property
    def misdelivered(self) -> int:
        """Number of packets of flows that have reached a NIC with another address."""
        return sum(int(state.scalars[s.MISDELIVERED]) for state in self.states)

    def drops(self, row: int) -> Drops:
        """Return the drop counts of the switch with this index, or those of hosts for ``NONE``."""
        return Drops(*(sum(int(state.drops[row, reason]) for state in self.states) for reason in range(s.DROP_REASONS)))

    def by_level(self, first: int) -> NDArray[np.int64]:
        """Return a column of every link's queues, from that of level 0 on; acknowledgements count as level 7."""
        levels = np.zeros((len(self._fabric.links), s.LEVELS), dtype=np.int64)
        for state in self.states:  # in all but that of its part, a link's columns are 0
            by_queue = state.links[: len(levels), first :: s.QUEUE_COLUMNS]
            levels += by_queue[:, : s.LEVELS]
            levels[:, -1] += by_queue[:, s.LEVELS]
        return levels
