"""Random programs, and what NumPy computes in their place."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from runtime.arrays import Sharding
from runtime.executor.computations import Array
from runtime.lowering.assign import Placement
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.simulated_hosts import ARGUMENTS, DEVICES, FUNCTIONS, HOSTS, SPEC


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, Mapping[int, Placement]]:
    """Programs of two arrays and a predicate; some calls compute only where the predicate is as their guard says."""
    *arrays, predicate = (Value(node) for node in range(len(ARGUMENTS)))
    calls: list[Call] = []
    slices: dict[int, Placement] = {}
    values = list(arrays)
    for number in range(draw(st.integers(1, 5))):
        function = draw(st.sampled_from([0, 0, 1, 1, 1, 2]))
        on = draw(st.integers(0, len(slices)))
        if on == len(slices):
            places = [
                (draw(st.integers(0, HOSTS - 1)), draw(st.integers(0, DEVICES - 1)))
                for _ in range(draw(st.sampled_from([1, 2, 4])))
            ]
            slices[on] = Placement("island", tuple(host for host, _ in places), tuple(place for _, place in places))
        shards = len(slices[on].hosts)
        sharding = Sharding(draw(st.sampled_from([None, 0, 1])), shards)
        taken = [draw(st.sampled_from(values)) for _ in range(2 if function == 1 else 1)]
        guards = draw(st.sampled_from([(), (), (True,), (False,)]))
        inputs = (
            *(Input(predicate, Sharding(None, shards)) for _ in guards),
            *(Input(value, sharding) for value in taken),
        )
        made = (Output(SPEC, sharding),)
        calls.append(Call(function, FUNCTIONS[function].__name__, on, inputs, made, guards=guards))
        values.append(Value(len(ARGUMENTS) + number))
    results = draw(st.lists(st.sampled_from(values[len(arrays) :]), min_size=1, unique=True))
    return Program("random", ARGUMENTS, tuple(calls), tuple(results)), slices


def computed(program: Program, arguments: Sequence[Array | None]) -> list[Array | None]:
    """What the results of a program are; None for those that depend on what fails."""
    values = list(arguments)
    for _, call in program.nodes():
        taken = [values[each.value.node] for each in call.inputs]
        guarded = taken[len(call.guards) :]
        if any(each is None for each in taken):
            values.append(None)
        elif any(bool(each) is not when for each, when in zip(taken, call.guards, strict=False)):
            values.append(np.zeros(SPEC.shape))
        else:
            values.append(None if call.function == 2 else FUNCTIONS[call.function](*guarded))
    return [values[result.node] for result in program.results]
