"""Programs of tenants whose computations are timers and whose transfers are real: pipelines and data parallelism.

Devices only wait, so a machine of two cores plays many. What a call returns is as large as it says, and is really sent.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import runtime as rt
from runtime.pipelines import Schedule, interleaved

Program = Callable[..., list[Any]]
"""A step: takes a state of one array for each slice, and returns the next one."""

_STATE = rt.ArraySpec((8,), "uint8")


def pipelined(
    slices: Sequence[rt.VirtualSlice],
    schedule: Schedule,
    *,
    micro_batches: int,
    stage_s: float,
    activation_bytes: int,
) -> Program:
    """Return a step of training in a pipeline, with a stage on each slice of one device.

    Forward and backward pass of a micro-batch take ``stage_s`` each; activations and their gradients go from stage to
    stage. The step ends with an update of each stage.
    """
    last = len(slices) - 1
    passed = rt.ArraySpec((activation_bytes,), "uint8")
    forward = [_timed(each, "forward", stage_s, passed) for each in slices]
    backward = [_timed(each, "backward", stage_s, passed) for each in slices]
    update = [_timed(each, "update", 0.0, _STATE) for each in slices]

    @rt.program
    def step(*state: Any) -> list[Any]:
        made: dict[tuple[int, int], Any] = {}
        gradients: dict[tuple[int, int], Any] = {}
        newest: dict[int, Any] = {}
        for each in interleaved(schedule(len(slices), micro_batches)):
            stage, number = each.stage, each.micro_batch
            if each.kind == "forward":
                given = made[stage - 1, number] if stage else state[0]
                made[stage, number] = newest[stage] = forward[stage](given, state[stage])
            else:
                after = gradients[stage + 1, number] if stage < last else made[stage, number]
                gradients[stage, number] = newest[stage] = backward[stage](after, made[stage, number])
        return [run(newest[stage]) for stage, run in enumerate(update)]

    return step


def data_parallel(
    slices: Sequence[rt.VirtualSlice], *, forward_s: float, backward_s: float, buckets: int, gradient_bytes: int
) -> Program:
    """Return a step of data parallelism, with a replica on each slice of one device.

    The backward pass makes gradients in buckets, ``gradient_bytes`` together. Each bucket goes to all other replicas as
    soon as it is made, while the next one is computed. The step ends with an update, which needs all of them.
    """
    bucket = rt.ArraySpec((gradient_bytes // buckets,), "uint8")
    forward = [_timed(each, "forward", forward_s, _STATE) for each in slices]
    backward = [_timed(each, "backward", backward_s / buckets, bucket) for each in slices]
    update = [_timed(each, "update", 0.0, _STATE) for each in slices]

    @rt.program
    def step(*state: Any) -> list[Any]:
        newest = [run(own) for run, own in zip(forward, state, strict=True)]
        gradients = []
        for _ in range(buckets):
            newest = [run(own) for run, own in zip(backward, newest, strict=True)]
            gradients.append(newest)
        return [run(*[each for row in gradients for each in row]) for run in update]

    return step


def initial_state(slices: Sequence[rt.VirtualSlice]) -> list[Any]:
    """Return the state before the first step."""
    made = [_timed(each, "begin", 0.0, _STATE) for each in slices]
    return [run(np.zeros(1, np.uint8)) for run in made]


def _timed(slice_: rt.VirtualSlice, name: str, duration_s: float, spec: rt.ArraySpec) -> Any:
    return rt.pmap(rt.timer(duration_s, outputs=spec, name=name), devices=slice_, in_axes=None, out_axes=None)
