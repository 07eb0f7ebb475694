"""Which switch of a fabric has which program."""

from collections.abc import Mapping
from itertools import count
from types import MappingProxyType

from emulator.compiler.program import Program
from emulator.compiler.resources import Resources
from emulator.congestion.control import CongestionControl
from topologies.fabric import Fabric

_NOTHING = Resources({}, {}, {}, {}, {}, {})


class ProgramsBySwitch:
    """Programs of a fabric's switches. Equal programs are one, with one number from 1 on.

    Args:
        fabric: The fabric.
        program: The program of all switches, or that of each switch by its name.
        controls: Congestion controls, which are compiled into every program.

    Raises:
        ValueError: A switch is not there, no switch has a program, or programs do not fit together.
    """

    def __init__(
        self,
        fabric: Fabric,
        program: Program | Mapping[str, Program],
        controls: tuple[CongestionControl, ...],
    ) -> None:
        if isinstance(program, Mapping):
            by_switch = {name: one.controlled_by(controls) for name, one in program.items()}
        else:
            program = program.controlled_by(controls)
            by_switch = dict.fromkeys(fabric.switches, program)
        for name in by_switch:
            if name not in fabric.switch_index:
                raise ValueError(f"a program is for switch {name!r}, which the fabric does not have")
        if not by_switch:
            # Also a fabric without switches has an event loop.
            if isinstance(program, Mapping):
                raise ValueError("no switch has a program; the fabric needs at least one")
            self._first = program
        else:
            self._first = next(iter(by_switch.values()))
        self.drop_port = self._first.drop_port
        self._by_switch: dict[str, Program] = {}
        self._number_of: dict[str, int] = {}
        self.numbers: dict[Program, int] = {self._first: 1}
        for name, one in by_switch.items():
            self.require_fitting(one)
            self.put(name, one)

    @property
    def by_switch(self) -> Mapping[str, Program]:
        """Program of every switch that has one."""
        return MappingProxyType(self._by_switch)

    def require_fitting(self, program: Program) -> None:
        """Raise ValueError if a program cannot stand beside the others."""
        if program.drop_port != self.drop_port:
            raise ValueError(
                f"program {program.name!r} has drop port {program.drop_port}, and the fabric's is {self.drop_port}"
            )
        if program.is_wired != self._first.is_wired:
            own, others = ("with" if one.is_wired else "without" for one in (program, self._first))
            raise ValueError(
                f"program {program.name!r} is compiled {own} real interfaces, and the fabric's others {others} them"
            )

    def put(self, switch: str, program: Program) -> None:
        """Give a switch a program; those that no switch has any more are forgotten."""
        self._by_switch[switch] = program
        used = {*self._by_switch.values()}
        self.numbers = {one: number for one, number in self.numbers.items() if one in used}
        if program not in self.numbers:
            taken = {*self.numbers.values()}
            self.numbers[program] = next(number for number in count(1) if number not in taken)
        self._number_of = {name: self.numbers[one] for name, one in self._by_switch.items()}

    def number(self, switch: str) -> int:
        """Return the number of a switch's program, 0 where it has none."""
        return self._number_of.get(switch, 0)

    def resources_of(self, switch: str) -> Resources:
        """Return the objects of a switch's program."""
        return self._by_switch[switch].resources if switch in self._by_switch else _NOTHING
