"""The programs of a fabric's switches as the engine runs them: their event loops, and how switches get others."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from emulator.compiler.program import Program
from emulator.congestion.control import CongestionControl
from emulator.engine import state as s
from emulator.engine.build import with_program
from emulator.engine.programs import address_of, run_mixed
from emulator.engine.queues import flush, lose_arrivals
from emulator.engine.transport import begin_transfer
from emulator.memory import Arena
from emulator.parts import Parts
from emulator.programs_by_switch import ProgramsBySwitch
from emulator.snapshot import Loop
from emulator.switch import EmulatedSwitch
from topologies.fabric import Fabric


class RunningPrograms:
    """Programs of a fabric's switches, each with the congestion controls of the hosts compiled in.

    Args:
        fabric: The topology.
        programs: Which switch has which program at first, with the controls compiled in.
        controls: The congestion controls.
        parts: The engine's arrays, with room for these programs.
        arena: The memory of the switches.
        switches: The switches.

    Raises:
        ValueError: There are several parts, and several programs.
    """

    def __init__(
        self,
        fabric: Fabric,
        programs: ProgramsBySwitch,
        controls: tuple[CongestionControl, ...],
        parts: Parts,
        arena: Arena,
        switches: Mapping[str, EmulatedSwitch],
    ) -> None:
        self._fabric = fabric
        self._programs = programs
        self._controls = controls
        self._parts = parts
        self._arena = arena
        self._switches = switches
        self._require_one(*programs.numbers)
        parts.first.blocks[:] = [switch.block for switch in switches.values()]

    @property
    def by_switch(self) -> Mapping[str, Program]:
        """Program of every switch that has one, by its name."""
        return self._programs.by_switch

    @property
    def numbers(self) -> Mapping[Program, int]:
        """Programs that the switches have, with the numbers by which the engine knows them."""
        return MappingProxyType(self._programs.numbers)

    @property
    def first(self) -> Program:
        """One of the programs; what programs have in common is compiled into each."""
        return next(iter(self._programs.numbers))

    def prepare(self, program: Program) -> None:
        """Compile a program's event loop, or load it from the cache; any thread may do this."""
        address_of(program.controlled_by(self._controls).run, self._parts.first, self._arena.words)

    def load(self, switch: str, program: Program) -> None:
        """Give a switch another program; see ``EmulatedFabric.load_program``."""
        if self._programs.by_switch.get(switch) == program:
            return
        program = program.controlled_by(self._controls)
        self._programs.require_fitting(program)
        self._require_one(*self._programs.numbers, program)
        self._parts.first = with_program(self._parts.first, program)
        state, number = self._parts.first, self._fabric.switch_index[switch]
        for link in np.flatnonzero(state.links[:, s.LINK_SOURCE_SWITCH] == number):
            flush(state, int(link), s.NO_PIPELINE)
        if state.scalars[s.FIRST_WAY_BACK] != s.NONE:
            lose_arrivals(state, int(state.scalars[s.FIRST_WAY_BACK]) + number, s.NO_PIPELINE)
        self._switches[switch].load(program.resources)
        state.blocks[number] = self._switches[switch].block
        self._programs.put(switch, program)
        self._parts.first = state._replace(loops=state.loops[:0])

    # ---- what the engine knows --------------------------------------------------------------------------------------

    @property
    def loop(self) -> Loop:
        """Event loop of the programs that the switches have: that of the one program, or those of all in turn."""
        if len(self._programs.numbers) == 1:
            return self.first.run
        self.know_loops()
        return run_mixed

    @property
    def begin_transfer(self) -> Callable[[s.State, int, int, int], object]:
        """The engine's function that begins a transfer; it is a program's own where flows have congestion controls."""
        begin: Callable[[s.State, int, int, int], object] = begin_transfer
        return self.first.functions["begin_transfer"] if self._controls else begin

    def show(self) -> None:
        """Tell the engine which switches have which program, and let it go on with any of them."""
        for state in self._parts.states:
            state.scalars[s.PROGRAM] = next(iter(self._programs.numbers.values()))
        numbers = [self._programs.number(name) if switch.is_ready else 0 for name, switch in self._switches.items()]
        self._parts.first.programs[: len(numbers)] = numbers

    def know_loops(self) -> None:
        """Tell the engine where the loops of all programs are; a new one is compiled, or loaded from the cache."""
        state = self._parts.first
        if len(state.loops):
            return
        loops = np.zeros(1 + max(self._programs.numbers.values()), dtype=np.int64)
        for program, number in self._programs.numbers.items():
            loops[number] = address_of(program.run, state, self._arena.words)
        self._parts.first = state._replace(loops=loops)

    def _require_one(self, *programs: Program) -> None:
        if len(self._parts.states) > 1 and len({*programs}) > 1:
            raise ValueError("on several cores all switches of a fabric have the same program")
