"""What the server keeps of a client: its functions, programs, slices and arrays."""

from dataclasses import dataclass, field
from itertools import count
from weakref import WeakKeyDictionary

from runtime import messages
from runtime.lowering.assign import Layout, Placement
from runtime.lowering.cache import LoweringCache
from runtime.lowering.subprograms import LoweredProgram
from runtime.messages import Failure
from runtime.program import Program
from runtime.server.channel import Channel

_numbers = count()


@dataclass(eq=False)
class HeldArray:
    """An array that a client holds by a handle: where it lies, and the gang that makes it; or why it is not there."""

    layout: Layout
    gang: int | None
    failure: Failure | None = None


@dataclass(eq=False)
class NumberedFunction:
    """A function of a client, with the number under which hosts know it, and how long a shard takes."""

    registered: messages.RegisterFunction
    seconds: float
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(eq=False)
class RegisteredProgram:
    """A program of a client with its functions."""

    program: Program
    functions: tuple[NumberedFunction, ...]


@dataclass(eq=False)
class Account:
    """A client that is connected."""

    number: int
    name: str
    channel: Channel
    functions: dict[int, NumberedFunction] = field(default_factory=dict)
    programs: dict[int, RegisteredProgram] = field(default_factory=dict)
    slices: dict[int, Placement] = field(default_factory=dict)
    gangs: dict[int, frozenset[int]] = field(default_factory=dict)
    arrays: dict[int, HeldArray] = field(default_factory=dict)
    lowering: LoweringCache = field(default_factory=LoweringCache)
    executions: set[int] = field(default_factory=set)
    subprograms: set[int] = field(default_factory=set)
    _first_numbers: WeakKeyDictionary[LoweredProgram, int] = field(default_factory=WeakKeyDictionary)

    def first_number(self, lowered: LoweredProgram) -> int:
        """Return the number under which hosts know the first subprogram of a lowered program; the others follow."""
        first = self._first_numbers.get(lowered)
        if first is None:
            numbers = [next(_numbers) for _ in lowered.subprograms]
            first = self._first_numbers[lowered] = numbers[0]
            self.subprograms.update(numbers)
        return first

    @property
    def label(self) -> str:
        """Return what the schedulers call it."""
        return f"{self.name}#{self.number}"
