"""Training steps over islands: a pipeline, data parallelism with a reduction in two steps, and a mixture of experts.

Each island of a tenant is a slice, numbered from 0, of equally many devices. Sizes are per device, so that a step on
smaller islands takes as long, and sends as much per device. Times are those of 512 devices an island with 50 TFLOP/s
each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.islands.program_builder import ProgramBuilder, TimedProgram
from runtime.arrays import ArraySpec
from runtime.lowering.assign import host_cpus_of
from runtime.pipelines import Stage, one_forward_one_backward, training_step
from runtime.program import Value

MICRO_BATCHES = 16
STAGE_FORWARD_S = 0.164
"""Of 16 billion parameters and 131,072 tokens; a backward pass takes twice as long."""
STAGE_TOKENS = 256
"""Of a micro-batch, per device."""
STAGE_WIDTH = 12_288

BUCKETS = 8
REPLICA_FORWARD_S = 0.655
"""Of 16 billion parameters and 524,288 tokens."""
REPLICA_PARAMETERS = 31_250_000
"""Per device."""
BUCKET_REDUCTION_S = 0.16
"""On the CPUs of hosts: 8 GB a host at 50 GB/s."""

LAYERS = 8
ATTENTION_S = 0.005
"""Of half a billion parameters and 131,072 tokens."""
EXPERTS_S = 0.02
"""Of two billion parameters."""
EXPERT_TOKENS = 256
"""Per device; each goes to one expert."""
EXPERT_WIDTH = 4_096

UPDATE_S = 0.01

_SMALL = 1
"""Columns of arrays that stay where they are."""


def _rows(devices: int, rows: int, columns: int) -> ArraySpec:
    return ArraySpec((devices * rows, columns), "float16")


def pipeline(devices: Mapping[int, int]) -> TimedProgram:
    """A GPT in a 1F1B pipeline, a stage on each island.

    The backward pass of a stage takes the input of the stage again, which was sent once for both passes.
    """
    stages = sorted(number for number in devices if number >= 0)
    builder = ProgramBuilder("pipeline", devices)
    activation = _rows(devices[0], STAGE_TOKENS, STAGE_WIDTH)
    kept = _rows(devices[0], 1, _SMALL)

    def call(name: str, stage: int, duration_s: float, given: Sequence[Any], outputs: Sequence[ArraySpec]) -> Any:
        return builder.call(name, stage, duration_s, [each for each in given if isinstance(each, Value)], outputs)

    def stage(number: int) -> Stage:
        is_last = number == len(stages) - 1
        passes_s = STAGE_FORWARD_S * (3 if is_last else 2)
        made = (activation, kept, kept) if is_last else (activation, kept)
        return Stage(
            lambda *given: call("forward", number, STAGE_FORWARD_S, given, (activation,))[0],
            lambda *given: call("backward", number, passes_s, given, made),
            lambda *given: call("update", number, UPDATE_S, given, (kept, kept)),
        )

    nothing = [None] * MICRO_BATCHES
    training_step(list(map(stage, stages)), [[]] * len(stages), nothing, nothing, one_forward_one_backward)
    return builder.finished()


def data_parallel(devices: Mapping[int, int]) -> TimedProgram:
    """Replicas of a model, one on each island, sharded over its devices.

    Islands take turns to own buckets of gradients. The CPUs of the owner's hosts add up the bucket of all islands, each
    host its part, while devices compute the next bucket; then every island takes the sum.
    """
    islands = sorted(number for number in devices if number >= 0)
    builder = ProgramBuilder("data parallel", devices)
    bucket = _rows(devices[0], 1, REPLICA_PARAMETERS // BUCKETS)
    kept = _rows(devices[0], 1, _SMALL)
    latest = [builder.call("forward", island, REPLICA_FORWARD_S, (), (kept,))[0] for island in islands]
    sums: list[Value] = []
    for number in range(BUCKETS):
        gradients = []
        for island in islands:
            backward_s = 2 * REPLICA_FORWARD_S / BUCKETS
            gradient, latest[island] = builder.call("backward", island, backward_s, (latest[island],), (bucket, kept))
            gradients.append(gradient)
        owner = host_cpus_of(islands[number % len(islands)])
        sums += builder.call("reduce", owner, BUCKET_REDUCTION_S, gradients, (bucket,))
    for island in islands:
        builder.call("update", island, UPDATE_S, sums, (kept,))
    return builder.finished()


def experts(devices: Mapping[int, int]) -> TimedProgram:
    """A mixture of experts, an equal part of them on each island.

    In each layer islands send tokens to the experts of all islands, and get them back; backward likewise.
    """
    islands = sorted(number for number in devices if number >= 0)
    builder = ProgramBuilder("experts", devices)
    parts = [_rows(devices[0], max(1, EXPERT_TOKENS // len(islands)), EXPERT_WIDTH)] * len(islands)
    received: list[list[Value]] = [[] for _ in islands]

    def exchange(name: str, duration_s: float) -> None:
        sent = [builder.call(name, island, duration_s, received[island], parts) for island in islands]
        received[:] = [[of[island] for of in sent] for island in islands]

    for factor in (1, 2):
        for _ in range(LAYERS):
            exchange("attention", factor * ATTENTION_S)
            exchange("experts", factor * EXPERTS_S)
    for island in islands:
        builder.call("update", island, UPDATE_S, received[island], (_rows(devices[0], 1, _SMALL),))
    return builder.finished()


PROGRAMS: Mapping[str, Callable[[Mapping[int, int]], TimedProgram]] = {
    "pipeline": pipeline,
    "data parallel": data_parallel,
    "experts": experts,
}
"""By kind of tenant; each takes the numbers of devices by slice, those of host CPUs too."""
