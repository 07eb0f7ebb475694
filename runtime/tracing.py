"""Tracing: ``program`` makes one program of the calls of mapped functions (``mapping``) inside a Python function.

Inside a traced function arrays are symbols: they have a shape and no data. Each call of a mapped function adds one
node. The function is traced once for each combination of argument shapes; what it returns then is the program. Where a
call returns rows of which no bound is known, there is none, and each call is a program of its own (``stepping``).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from runtime import stepping
from runtime.arrays import ArraySpec, Sharding
from runtime.errors import UnboundedError
from runtime.functions import Function
from runtime.program import Call, Input, Program, Value
from runtime.ray_objects import with_objects
from runtime.structures import Structure, flatten, unflatten


class Devices(Protocol):
    """A virtual slice, as tracing sees it: ``number`` is the runtime's, ``size`` counts its devices."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def runtime(self) -> "Runner": ...  # noqa: D102


class Runner(Protocol):
    """What runs programs, as tracing sees it."""

    def run(self, traced: "TracedProgram", arguments: Sequence[Any]) -> list[Any]:
        """Start a program, and return its results as futures."""


@dataclass(frozen=True, eq=False)
class TracedArray:
    """An array inside a traced function: a symbol without data."""

    spec: ArraySpec
    value: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its axes."""
        return self.spec.shape

    @property
    def dtype(self) -> str:
        """Name of its dtype."""
        return self.spec.dtype

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError(f"{self.value} is traced and has no data; compute on it with mapped functions")

    def __bool__(self) -> bool:
        raise TypeError(f"{self.value} is traced and has no data, so no branch can depend on it")


@dataclass(frozen=True, eq=False)
class TracedProgram:
    """A program with what only the client has of it.

    Calls name ``functions`` by their place. ``captured`` are the arrays that the traced code used without taking them
    as arguments; in the program they follow the arguments.
    """

    program: Program
    functions: tuple[Function, ...]
    captured: tuple[Any, ...]
    runtime: Runner


def spec_of(array: Any) -> ArraySpec:
    """Return the spec of an array: of this runtime, of NumPy, or of what NumPy makes one of."""
    spec = getattr(array, "spec", None)
    if isinstance(spec, ArraySpec):
        return spec
    made = np.asarray(array)
    return _spec(made.shape, made.dtype)


@functools.lru_cache(maxsize=1024)
def _spec(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> ArraySpec:
    return ArraySpec(shape, dtype.name)


class Trace:
    """A program in the making. Values of captured arrays have negative nodes, as arguments may still follow."""

    def __init__(self, name: str, arguments: Sequence[ArraySpec]) -> None:
        self._name = name
        self._arguments = tuple(arguments)
        self._captured: list[Any] = []
        self._functions: list[Function] = []
        self._calls: list[Call] = []
        self._devices: list[Devices] = []
        self._guards: list[tuple[Value, bool]] = []
        self._runtime: Runner | None = None
        self.unbounded: str | None = None
        """A function that returns rows of which no bound is known: there will be no program."""

    def value(self, array: Any) -> Value:
        """Return the value of an array, which may be traced or not."""
        if isinstance(array, TracedArray):
            return array.value
        for number, known in enumerate(self._captured):
            if known is array:
                return Value(-1 - number)
        self._captured.append(array)
        return Value(-len(self._captured))

    @contextmanager
    def guarded(self, predicate: TracedArray, *, when: bool) -> Iterator[None]:
        """Let calls that are added meanwhile be computed only where a predicate is so."""
        self._guards.append((predicate.value, when))
        try:
            yield
        finally:
            self._guards.pop()

    def place(self, array: Any) -> tuple[Devices, int | None] | None:
        """Return the devices on which an array is computed, and the axis along which it is cut; None if on none."""
        if not isinstance(array, TracedArray) or array.value.node < len(self._arguments):
            return None
        number = array.value.node - len(self._arguments)
        return self._devices[number], self._calls[number].outputs[array.value.output].sharding.axis

    def add(self, call: Call, devices: Devices) -> list[TracedArray]:
        """Add a call and return its outputs. Raises ValueError if its slice belongs to another runtime."""
        runtime = devices.runtime
        if self._runtime is not None and self._runtime is not runtime:
            raise ValueError(f"{call.name}: its slice belongs to another runtime than the rest of {self._name}")
        self._runtime = runtime
        guards = tuple(Input(value, Sharding(None, devices.size)) for value, _ in self._guards)
        call = replace(call, inputs=(*guards, *call.inputs), guards=tuple(when for _, when in self._guards))
        self._calls.append(call)
        self._devices.append(devices)
        node = len(self._arguments) + len(self._calls) - 1
        return [TracedArray(output.spec, Value(node, index)) for index, output in enumerate(call.outputs)]

    def function(self, called: Function) -> int:
        """Return the number of a function in this program."""
        if called not in self._functions:
            self._functions.append(called)
        return self._functions.index(called)

    def finished(self, results: Sequence[Value]) -> TracedProgram:
        """Return the program, with captured arrays between the arguments and the calls."""
        if self._runtime is None:
            raise ValueError(f"{self._name}: it calls no mapped function, so there is nothing to run")
        first, captured = len(self._arguments), len(self._captured)

        def placed(value: Value) -> Value:
            if value.node < 0:
                return Value(first - 1 - value.node)
            return value if value.node < first else Value(value.node + captured, value.output)

        calls = tuple(
            replace(call, inputs=tuple(Input(placed(given.value), given.sharding) for given in call.inputs))
            for call in self._calls
        )
        specs = (*self._arguments, *map(spec_of, self._captured))
        made = Program(self._name, specs, calls, tuple(map(placed, results)))
        return TracedProgram(made, tuple(self._functions), tuple(self._captured), self._runtime)


_tracing: ContextVar[Trace | None] = ContextVar("runtime_trace", default=None)


def current_trace() -> Trace | None:
    """Return the program that is being traced, if one is."""
    return _tracing.get()


_Traced = tuple[TracedProgram, Structure] | str
"""A program with the nesting of its results, or the function because of which there is none."""


class TracedFunction:
    """A Python function that is traced once for each combination of argument shapes.

    Where one of its calls returns rows of which no bound is known, it runs call by call instead (``stepping``).
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._traced: dict[tuple[Structure, tuple[ArraySpec, ...]], _Traced] = {}
        functools.update_wrapper(self, call)

    def __call__(self, *arguments: Any) -> Any:
        """Run the program for these arguments; return futures, nested as the function nests its arrays."""
        if _tracing.get() is not None:
            return self._call(*arguments)
        given, structure = flatten(tuple(arguments))
        leaves = with_objects(given)
        found = self._found(leaves, structure)
        if isinstance(found, str):
            return stepping.called(self._call.__name__, self._call, structure, leaves)
        traced, returned = found
        return unflatten(returned, traced.runtime.run(traced, [*leaves, *traced.captured]))

    def trace(self, *arguments: Any) -> Program:
        """Return the program for arguments like these, without running it. Raises UnboundedError if there is none."""
        given, structure = flatten(tuple(arguments))
        found = self._found(with_objects(given), structure)
        if isinstance(found, str):
            what = f"{found} returns rows of which no bound is known, so the function runs call by call"
            raise UnboundedError(f"{self._call.__name__}: there is no program: {what}")
        return found[0].program

    def _found(self, leaves: Sequence[Any], structure: Structure) -> "_Traced":
        specs = tuple(map(spec_of, leaves))
        found = self._traced.get((structure, specs))
        if found is None:
            found = self._traced[structure, specs] = self._trace(specs, structure)
        return found

    def _trace(self, specs: Sequence[ArraySpec], structure: Structure) -> "_Traced":
        name = self._call.__name__
        trace = Trace(name, specs)
        token = _tracing.set(trace)
        try:
            symbols = [TracedArray(spec, Value(node)) for node, spec in enumerate(specs)]
            returned, nesting = flatten(self._call(*unflatten(structure, symbols)))
        except Exception:
            if trace.unbounded is None:
                raise
        finally:
            _tracing.reset(token)
        if trace.unbounded is not None:  # also where the function has caught the error
            return trace.unbounded
        for each in returned:
            if not isinstance(each, TracedArray):
                raise TypeError(f"{name}: expected it to return traced arrays, got {each!r:.200}")
        return trace.finished([each.value for each in returned]), nesting


def program(call: Callable[..., Any]) -> TracedFunction:
    """Trace a Python function into one program, as a decorator.

    Its arguments and results are arrays, or tuples, lists and dicts of them. Other arrays that it uses become
    arguments of the program. Where one of its calls returns rows of which no bound is known, it runs call by call.
    """
    return TracedFunction(call)
