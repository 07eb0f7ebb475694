"""Mapping: ``pmap`` places functions on slices.

Inside a traced function (``tracing``) each call of a mapped function adds one node. Outside, each call is a program of
its own.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runtime.arrays import ArraySpec, Sharding
from runtime.errors import UnboundedError
from runtime.functions import Function, function
from runtime.program import Call, Input, Output, Value
from runtime.ray_objects import with_objects
from runtime.tracing import Devices, Trace, TracedArray, TracedProgram, current_trace, spec_of

Axes = int | None | Sequence[int | None]
"""One axis for all arrays, or one for each; None where every device has the whole array."""

_PACKAGE = str(Path(__file__).parent)


class Mapped:
    """A function on a slice: a call runs one shard on each of its devices."""

    def __init__(self, mapped: Function, devices: Devices, in_axes: Axes, out_axes: Axes) -> None:
        self.function = mapped
        self.devices = devices
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._alone: dict[tuple[ArraySpec, ...], TracedProgram] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Add a node to the program that is being traced, or run a program of this call alone."""
        trace = current_trace()
        arrays = with_objects(arguments)
        if trace is not None:
            added = self._add_to(trace, arrays)
            if not all(each.spec.is_bounded for each in added):
                trace.unbounded = self.function.name
                raise UnboundedError(f"{self.function.name}: no bound of the rows that it returns is known")
            return _one_or_tuple(added)
        specs = tuple(map(spec_of, arrays))
        traced = self._alone.get(specs)
        if traced is None:
            trace = Trace(self.function.name, specs)
            made = self._add_to(trace, [TracedArray(spec, Value(node)) for node, spec in enumerate(specs)])
            traced = self._alone[specs] = trace.finished([each.value for each in made])
        return _one_or_tuple(traced.runtime.run(traced, arrays))

    def _add_to(self, trace: Trace, arrays: Sequence[Any]) -> list[TracedArray]:
        name = self.function.name
        shardings = self._shardings("in_axes", self._in_axes, len(arrays))
        try:
            cut = zip(shardings, map(spec_of, arrays), strict=True)
            shards = tuple(sharding.shard_spec(spec) for sharding, spec in cut)
            made = self.function.output_specs(shards, self.devices.size)
            out = self._shardings("out_axes", self._out_axes, len(made))
            outputs = tuple(Output(each.whole_spec(spec), each) for each, spec in zip(out, made, strict=True))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        inputs = tuple(Input(trace.value(each), sharding) for each, sharding in zip(arrays, shardings, strict=True))
        number = trace.function(self.function)
        call = Call(number, name, self.devices.number, inputs, outputs, _location_of_caller())
        return trace.add(call, self.devices)

    def _shardings(self, what: str, axes: Axes, count: int) -> list[Sharding]:
        each = [axes] * count if axes is None or isinstance(axes, int) else list(axes)
        if len(each) != count:
            raise ValueError(f"{self.function.name}: {what}: {len(each)} axes for {count} arrays")
        return [Sharding(axis, self.devices.size) for axis in each]


def pmap(mapped: Function | Callable[..., Any], *, devices: Devices, in_axes: Axes = 0, out_axes: Axes = 0) -> Mapped:
    """Place a function on a slice: each of its devices runs the function on its own shard.

    Args:
        mapped: The function; a plain one becomes a function of PyTorch (``function``).
        devices: The slice (``make_virtual_device_set().add_slice``).
        in_axes: The axis along which inputs are cut into equal blocks, one a device: the same for all, or one for each
            input; None gives every device the whole.
        out_axes: The axis along which what devices return is joined; None where all return the same.

    Raises:
        ValueError: A collective function is placed on the CPUs of hosts.
    """
    made = mapped if isinstance(mapped, Function) else function(mapped)
    if made.is_collective and devices.number < 0:
        raise ValueError(f"{made.name}: collective functions do not run on the CPUs of hosts")
    return Mapped(made, devices, in_axes, out_axes)


def _one_or_tuple(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _location_of_caller() -> str:
    """Return file, line and function of the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
