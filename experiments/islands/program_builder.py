"""Programs of the runtime, written down call by call with how long each takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.arrays import ArraySpec, Sharding
from runtime.program import Call, Input, Output, Program, Value


@dataclass(frozen=True)
class TimedProgram:
    """A program, and how long its nodes take, by number."""

    program: Program
    seconds: tuple[float, ...]


class ProgramBuilder:
    """Builds a program without arguments. ``shards`` says, by slice, how many devices it has.

    All arrays are cut along their first axis.
    """

    def __init__(self, name: str, shards: Mapping[int, int]) -> None:
        self._name = name
        self._shards = shards
        self._calls: list[Call] = []
        self._seconds: list[float] = []

    def call(
        self, name: str, on: int, duration_s: float, inputs: Sequence[Value], outputs: Sequence[ArraySpec]
    ) -> tuple[Value, ...]:
        """Add a call on a slice, and return its outputs."""
        sharding = Sharding(0, self._shards[on])
        taken = tuple(Input(value, sharding) for value in inputs)
        made = tuple(Output(spec, sharding) for spec in outputs)
        self._calls.append(Call(0, name, on, taken, made))
        self._seconds.append(duration_s)
        return tuple(Value(len(self._calls) - 1, number) for number in range(len(outputs)))

    def finished(self) -> TimedProgram:
        """Return the program; its results are the outputs of its last call."""
        last = len(self._calls) - 1
        results = tuple(Value(last, number) for number in range(len(self._calls[last].outputs)))
        return TimedProgram(Program(self._name, (), tuple(self._calls), results), tuple(self._seconds))
