"""Compiled functions: computations of which shapes and dtypes are known before they run.

A function takes the shards of its inputs as arrays and returns those of its outputs. What it returns is stated, or
found by running it on PyTorch's fake tensors, which have shapes but no data. Timers stand for computations: they occupy
a device for a time and return zeros. Only functions of ``library="torch"`` need PyTorch, and only to be traced and run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from runtime.arrays import ArraySpec

Library = Literal["torch", "numpy", "timer", "input"]
Outputs = ArraySpec | Sequence[ArraySpec] | Callable[..., ArraySpec | Sequence[ArraySpec]]
"""The arrays that a shard of a function returns, or a function from the specs of its inputs to these."""


@dataclass(frozen=True, eq=False)
class Function:
    """A compiled function; make one with ``function`` or ``timer``.

    ``duration_s`` is the time that a timer takes, and for others a first guess of what a shard takes.
    """

    name: str
    library: Library
    call: Callable[..., Any] | None
    outputs: Outputs | None = None
    duration_s: float | None = None
    is_collective: bool = False
    _known: dict[tuple[int, tuple[ArraySpec, ...]], tuple[ArraySpec, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    def output_specs(self, inputs: tuple[ArraySpec, ...], shards: int = 1) -> tuple[ArraySpec, ...]:
        """Return what one of so many shards returns for inputs of these specs.

        Raises TypeError where the function does not take such inputs, or where its outputs depend on data.
        """
        known = self._known.get((shards, inputs))
        if known is None:
            known = self._stated(inputs) if self.outputs is not None else self._inferred(inputs, shards)
            self._known[shards, inputs] = known
        return known

    def __call__(self, *arrays: Any) -> Any:
        """Run the function here, on whole arrays."""
        if self.call is None:
            raise TypeError(f"{self.name}: a timer runs on devices only")
        return self.call(*arrays)

    def _stated(self, inputs: tuple[ArraySpec, ...]) -> tuple[ArraySpec, ...]:
        stated = self.outputs(*inputs) if callable(self.outputs) else self.outputs
        specs = (stated,) if isinstance(stated, ArraySpec) else tuple(stated or ())
        if not specs or not all(isinstance(each, ArraySpec) for each in specs):
            raise TypeError(f"{self.name}: outputs: expected ArraySpecs, at least one, got {stated!r:.200}")
        return specs

    def _inferred(self, inputs: tuple[ArraySpec, ...], shards: int) -> tuple[ArraySpec, ...]:
        if self.library != "torch" or self.call is None:
            raise TypeError(f"{self.name}: functions of library {self.library!r} must state their outputs")
        if any(each.is_ragged for each in inputs):
            raise TypeError(f"{self.name}: functions that take ragged arrays must state their outputs")
        from runtime.fake_tensors import output_specs

        return output_specs(self.name, self.call, inputs, shards if self.is_collective else None)


@overload
def function(call: Callable[..., Any], /) -> Function: ...
@overload
def function(
    *,
    library: Literal["torch", "numpy"] = "torch",
    outputs: Outputs | None = None,
    duration_s: float | None = None,
    name: str | None = None,
    collective: bool = False,
) -> Callable[[Callable[..., Any]], Function]: ...


def function(
    call: Callable[..., Any] | None = None,
    /,
    *,
    library: Literal["torch", "numpy"] = "torch",
    outputs: Outputs | None = None,
    duration_s: float | None = None,
    name: str | None = None,
    collective: bool = False,
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Make a function that devices can run, as a decorator with or without options.

    Args:
        call: Takes one array for each input and returns an array, or a tuple of them. It must not change its inputs.
        library: Whose arrays it takes: PyTorch's tensors or NumPy's arrays.
        outputs: What a shard returns; needed unless PyTorch can find it out. Where no bound of the rows is known, the
            first size is None.
        duration_s: A first guess of how long a shard takes. The scheduler learns the rest by measuring.
        name: What messages and traces call it.
        collective: Whether it uses ``runtime.collectives``, in which its shards wait for each other.
    """

    def made(call: Callable[..., Any]) -> Function:
        if not callable(call):
            raise TypeError(f"expected a function, got {call!r:.200}")
        if library not in ("torch", "numpy"):
            raise ValueError(f"library: expected 'torch' or 'numpy', got {library!r}")
        if collective and library != "torch":
            raise ValueError(f"collective: only functions of PyTorch can use collectives, not of {library!r}")
        called = name or str(getattr(call, "__name__", type(call).__name__))
        return Function("lambda" if called == "<lambda>" else called, library, call, outputs, duration_s, collective)

    return made if call is None else made(call)


def timer(duration_s: float, outputs: Outputs | None = None, name: str = "timer") -> Function:
    """Make a function that occupies its device for ``duration_s`` and returns zeros.

    They have the spec of its first input, unless ``outputs`` says otherwise. Raises ValueError for a negative duration.
    """
    if not duration_s >= 0:
        raise ValueError(f"duration_s: expected a time from 0, got {duration_s}")
    return Function(name, "timer", None, _like_first if outputs is None else outputs, float(duration_s))


def _like_first(*inputs: ArraySpec) -> ArraySpec:
    if not inputs:
        raise TypeError("a timer without inputs must state its outputs")
    return inputs[0]
