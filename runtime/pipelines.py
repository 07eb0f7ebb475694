"""Pipelines: a model in stages, each on a slice of its own, through which micro-batches pass.

A program grants computations to a device in the order in which they were traced. So a schedule is an order of tracing:
``gpipe`` and ``one_forward_one_backward`` say what each stage does in turn, ``interleaved`` merges that into one order
in which everything is made before it is used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage does with a micro-batch."""

    stage: int
    kind: Literal["forward", "backward"]
    micro_batch: int


Schedule = Callable[[int, int], list[list[Step]]]
"""From numbers of stages and micro-batches to what each stage does in turn."""


def gpipe(stages: int, micro_batches: int) -> list[list[Step]]:
    """All forward passes, then all backward passes in reverse (Huang et al., GPipe, NeurIPS 2019)."""
    return [
        [
            *(Step(stage, "forward", each) for each in range(micro_batches)),
            *(Step(stage, "backward", each) for each in reversed(range(micro_batches))),
        ]
        for stage in range(stages)
    ]


def one_forward_one_backward(stages: int, micro_batches: int, extra: int = 0) -> list[list[Step]]:
    """Forward passes until the last stage has one, then backward and forward by turns (1F1B; PipeDream-Flush).

    A stage keeps at most as many micro-batches as there are stages from it to the end, each after it counted ``extra``
    times more. Stages of which each waits for a transfer from the next one need one extra, or they idle meanwhile. ::

        partial(one_forward_one_backward, extra=1)
    """
    orders = []
    for stage in range(stages):
        ahead = min((stages - stage - 1) * (1 + extra), micro_batches)
        order = [Step(stage, "forward", each) for each in range(ahead)]
        for each in range(micro_batches):
            if each + ahead < micro_batches:
                order.append(Step(stage, "forward", each + ahead))
            order.append(Step(stage, "backward", each))
        orders.append(order)
    return orders


def interleaved(orders: Sequence[Sequence[Step]]) -> Iterator[Step]:
    """Yield the steps of all stages, each stage's in its order, so that everything is made before it is used.

    Raises ValueError for orders in which stages would wait for each other for ever.
    """
    done: set[Step] = set()
    left = [list(reversed(order)) for order in orders]
    last = len(orders) - 1
    while any(left):
        ready = [order for order in left if order and _is_ready(order[-1], last, done)]
        if not ready:
            raise ValueError(f"stages wait for each other: {', '.join(str(order[-1]) for order in left if order)}")
        for order in ready:
            step = order.pop()
            done.add(step)
            yield step


def _is_ready(step: Step, last: int, done: set[Step]) -> bool:
    if step.kind == "forward":
        return step.stage == 0 or Step(step.stage - 1, "forward", step.micro_batch) in done
    return (step.stage == last or Step(step.stage + 1, "backward", step.micro_batch) in done) and (
        Step(step.stage, "forward", step.micro_batch) in done
    )


@dataclass(frozen=True)
class Stage:
    """A stage of a model, on its slice.

    ``forward`` takes parameters and input of the stage, and returns its output. ``backward`` takes parameters, input,
    the gradient of the output (in the last stage the targets), and the gradients summed so far, none for the first
    micro-batch. It returns the gradient of the input and the new sums; in the last stage the sum of losses stands
    before them. ``update`` takes parameters and sums and returns parameters; in the last stage the loss before them.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    update: Callable[..., Any]


def training_step(
    stages: Sequence[Stage],
    parameters: Sequence[Sequence[Any]],
    inputs: Sequence[Any],
    targets: Sequence[Any],
    schedule: Schedule = one_forward_one_backward,
) -> tuple[Any, list[list[Any]]]:
    """Trace one step of training; call it in a ``program``.

    Args:
        stages: The model.
        parameters: Those of each stage.
        inputs: One array for each micro-batch.
        targets: One array for each micro-batch.
        schedule: Which stage does what in turn.

    Returns:
        The loss as the last stage's update gives it, and the new parameters of each stage.
    """
    last = len(stages) - 1
    taken: dict[tuple[int, int], Any] = {(0, number): each for number, each in enumerate(inputs)}
    gradients: dict[tuple[int, int], Any] = {(last, number): each for number, each in enumerate(targets)}
    sums: list[list[Any]] = [[] for _ in stages]
    for step in interleaved(schedule(len(stages), len(inputs))):
        stage, number = step.stage, step.micro_batch
        if step.kind == "forward":
            if stage < last:
                taken[stage + 1, number] = stages[stage].forward(*parameters[stage], taken[stage, number])
            continue
        made = stages[stage].backward(
            *parameters[stage], taken.pop((stage, number)), gradients.pop((stage, number)), *sums[stage]
        )
        gradients[stage - 1, number], *sums[stage] = made
    updated = [_all(each.update(*own, *summed)) for each, own, summed in zip(stages, parameters, sums, strict=True)]
    loss, *updated[last] = updated[last]
    return loss, updated


def _all(arrays: Any) -> list[Any]:
    return list(arrays) if isinstance(arrays, tuple) else [arrays]
