"""Programs and functions that several tests use."""

from typing import Any

import runtime as rt
from runtime.arrays import ArraySpec, Sharding
from runtime.program import Call, Input, Output, Program, Value


@rt.function(library="numpy", outputs=lambda x: x)
def slow_add_one(x: Any) -> Any:
    """Take so long that a busy machine seems to double it in no run: the program would be registered anew."""
    import time

    time.sleep(0.1)
    return x + 1


def call(name: str, slice_: int, value: Value, spec: ArraySpec, taken: Sharding, made: Sharding | None = None) -> Call:
    """A call with one input and one output of the same spec."""
    return Call(0, name, slice_, (Input(value, taken),), (Output(spec, made or taken),), f"at {name}")


def chain(size: int, shards_a: int, shards_b: int) -> Program:
    """Arg, A on slice 0, B on slice 1, Result."""
    spec = ArraySpec((size,), "float64")
    a = call("a", 0, Value(0), spec, Sharding(0, shards_a))
    b = call("b", 1, Value(1), spec, Sharding(0, shards_b))
    return Program("chain", (spec,), (a, b), (Value(2),))
