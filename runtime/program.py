"""The location-free intermediate representation of a program: one node per sharded computation.

A program is a list of calls in the order of tracing. Nodes are numbered: first the arguments, then the calls. A chain
of two computations has four nodes, Arg, A, B and Result, whatever the number of shards (Pathways, section 4.3). Calls
name virtual slices; where these lie is for ``lowering`` to say. ``str(program)`` is its text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runtime.arrays import ArraySpec, Sharding

_PREDICATE = ArraySpec((), "bool")


@dataclass(frozen=True, slots=True)
class Value:
    """An array of the program: an argument, or an output of a call."""

    node: int
    output: int = 0

    def __str__(self) -> str:
        return f"%{self.node}.{self.output}" if self.output else f"%{self.node}"


@dataclass(frozen=True, slots=True)
class Input:
    """A value as a call takes it."""

    value: Value
    sharding: Sharding

    def __str__(self) -> str:
        return f"{self.value} as {self.sharding}"


@dataclass(frozen=True, slots=True)
class Output:
    """What a call makes: the whole array, and how it lies on the devices of the call."""

    spec: ArraySpec
    sharding: Sharding

    def __str__(self) -> str:
        return f"{self.spec} as {self.sharding}"


@dataclass(frozen=True, slots=True)
class Call:
    """One computation, with a shard on every device of a virtual slice.

    ``function`` is its number in the table of functions that comes with the program, ``name`` what the user calls it,
    ``location`` where the user's code calls it. The first inputs are predicates, as many as there are ``guards``; a
    shard computes only where each is as its guard says, and gives zeros elsewhere.
    """

    function: int
    name: str
    slice: int
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    location: str = ""
    guards: tuple[bool, ...] = ()

    def shardings(self) -> Iterator[Sharding]:
        """Yield the shardings of all inputs and outputs."""
        yield from (each.sharding for each in self.inputs)
        yield from (each.sharding for each in self.outputs)


@dataclass(frozen=True, slots=True)
class Program:
    """A program. Raises ValueError unless all shapes fit, and every value is made before it is used.

    So no program waits for itself, whatever text it comes from. A call that returns rows of which no bound is known is
    a program of its own, and no program takes such an array.
    """

    name: str
    arguments: tuple[ArraySpec, ...]
    calls: tuple[Call, ...]
    results: tuple[Value, ...]

    def __post_init__(self) -> None:
        for node, spec in enumerate(self.arguments):
            if not spec.is_bounded:
                raise ValueError(f"{self.name}: argument {node} is {spec}, and no bound of its rows is known")
        for node, call in self.nodes():
            if len(self.calls) > 1 and not all(output.spec.is_bounded for output in call.outputs):
                what = f"{call.name} returns rows of which no bound is known, beside other calls"
                raise ValueError(f"{self.name}: {what}")
            for given in call.inputs:
                if given.value.node >= node:
                    raise ValueError(f"{self.name}: {call.name} takes {given.value} before it is made")
                _named(given.sharding.check, self.spec(given.value), f"{self.name}: {call.name}")
            if len(call.guards) > len(call.inputs):
                raise ValueError(f"{self.name}: {call.name} has more guards than inputs")
            for guard in call.inputs[: len(call.guards)]:
                if self.spec(guard.value) != _PREDICATE or guard.sharding.axis is not None:
                    raise ValueError(f"{self.name}: {call.name}: a guard must be a {_PREDICATE} on every device")
            for output in call.outputs:
                _named(output.sharding.check, output.spec, f"{self.name}: {call.name}")
            if len({sharding.shards for sharding in call.shardings()}) > 1:
                raise ValueError(f"{self.name}: {call.name} has inputs and outputs of different numbers of shards")
        for result in self.results:
            self.spec(result)

    def nodes(self) -> Iterator[tuple[int, Call]]:
        """Yield the number of each call's node with the call."""
        return enumerate(self.calls, start=len(self.arguments))

    def call(self, node: int) -> Call:
        """Return the call of a node that is no argument."""
        return self.calls[node - len(self.arguments)]

    def spec(self, value: Value) -> ArraySpec:
        """Return what a value is. Raises ValueError if the program has no such value."""
        if not 0 <= value.node < len(self.arguments) + len(self.calls):
            raise ValueError(f"{self.name}: there is no {value}")
        if value.node < len(self.arguments):
            specs = [self.arguments[value.node]]
        else:
            specs = [output.spec for output in self.call(value.node).outputs]
        if not 0 <= value.output < len(specs):
            raise ValueError(f"{self.name}: there is no {value}")
        return specs[value.output]

    def __str__(self) -> str:
        arguments = ", ".join(f"%{node}: {spec}" for node, spec in enumerate(self.arguments))
        lines = [f"program {self.name}({arguments}) {{"]
        for node, call in self.nodes():
            count = len(call.guards)
            inputs, outputs = ", ".join(map(str, call.inputs[count:])), ", ".join(map(str, call.outputs))
            guards = [
                f"{'' if when else 'not '}{given.value}" for when, given in zip(call.guards, call.inputs, strict=False)
            ]
            condition = f" if {' and '.join(guards)}" if guards else ""
            lines.append(f"  %{node} = {call.name}({inputs}) on slice {call.slice} -> {outputs}{condition}")
        return "\n".join((*lines, f"  return {', '.join(map(str, self.results))}", "}"))


def _named(check: Callable[[ArraySpec], None], spec: ArraySpec, where: str) -> None:
    try:
        check(spec)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
