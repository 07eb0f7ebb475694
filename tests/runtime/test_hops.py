"""What a host works out of its part of a program."""

import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.executor.computations import Feed, LoadedCall, LoadedFunction
from runtime.executor.hops import Hops
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import HostPlan, lower
from runtime.messages import RegisterFunction
from runtime.program import Call, Input, Output, Program, Value

SPEC = ArraySpec((4,), "float64")


def hops(first: int, second: int) -> tuple[Hops, LoadedCall]:
    """Two calls, of so many shards on as many devices of host 0: the second takes what the first makes."""
    shardings = [Sharding(0, shards) for shards in (first, second)]
    calls = tuple(
        Call(0, "f", slice_, (Input(Value(slice_), sharding),), (Output(SPEC, sharding),))
        for slice_, sharding in enumerate(shardings)
    )
    slices = {
        slice_: Placement("island", (0,) * sharding.shards, tuple(range(sharding.shards)))
        for slice_, sharding in enumerate(shardings)
    }
    lowered = lower(Program("pair", (SPEC,), calls, (Value(2),)), slices, [AT_CLIENT])
    function = LoadedFunction(RegisterFunction(0, "f", "timer", 1.0, None))
    return Hops(HostPlan(lowered.subprograms[0], 0)), LoadedCall(calls[1], function)


def test_the_thread_of_a_device_passes_on_what_stays_there() -> None:
    found, call = hops(2, 2)
    assert found.shard_plan(call, 2, 1, 1).feeds == (Feed(0, 1, 1, 0),)
    assert not found.shard_plan(call, 1, 1, 1).leaves


@pytest.mark.parametrize(("first", "second"), [(2, 4), (4, 2), (1, 2)])
def test_the_thread_of_a_device_passes_on_no_part_of_a_shard(first: int, second: int) -> None:
    found, call = hops(first, second)
    assert found.shard_plan(call, 2, 0, 0).feeds == ()
    assert found.shard_plan(call, 1, 0, 0).leaves
