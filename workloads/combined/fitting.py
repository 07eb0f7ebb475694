"""What a job with combined parallelism asks of its model and its hosts, and each thing that does not divide."""

from collections.abc import Iterator

from topologies.problems import Problem
from workloads.combined.expansion import ranks_on
from workloads.combined.stages import cut
from workloads.combined_workload import CombinedWorkload
from workloads.described.timing import device_for

MOST_GPUS = 65_536
"""The most GPUs of a job."""
MOST_STEPS = 200_000
"""The most passes of all replicas over all stages in one direction; a task graph has some tasks for each."""


def combined_problems(workload: CombinedWorkload, num_hosts: int, gpus_per_host: int) -> Iterator[Problem]:
    """Yield the problems of a workload on so many hosts, with their keys; none means that it can be expanded."""
    problems = list(_of_model(workload))
    yield from problems
    num_gpus = num_hosts * gpus_per_host
    fixed = workload.tensor * workload.context * workload.pipeline
    if num_gpus % fixed:
        product = f"tensor x context x pipeline, {workload.tensor} x {workload.context} x {workload.pipeline}"
        yield Problem((), f"expected GPUs that are a multiple of {product}, got {num_gpus}")
        return
    if num_gpus > MOST_GPUS:
        yield Problem((), f"expected at most {MOST_GPUS:,} GPUs, got {num_gpus}")
        return
    ranks = ranks_on(workload, [str(host) for host in range(num_hosts)], gpus_per_host)
    data = ranks.degrees.data
    if workload.batch % (data * workload.micro_batch):
        each = f"{data} replicas with micro-batches of {workload.micro_batch}"
        yield Problem(("batch",), f"expected a multiple of {data * workload.micro_batch}, for {each}", workload.batch)
    steps = workload.batch // workload.micro_batch * workload.pipeline * workload.chunks_per_stage
    if steps > MOST_STEPS:
        product = f"batch / micro_batch x pipeline x chunks, {steps:,},"
        yield Problem(
            ("micro_batch",), f"expected one that makes {product} at most {MOST_STEPS:,}", workload.micro_batch
        )
    shared = workload.context * data
    if shared % workload.expert:
        yield Problem(("expert",), f"expected a divisor of context x data, {shared}", workload.expert)


def _of_model(workload: CombinedWorkload) -> Iterator[Problem]:
    model = workload.description
    for key, is_divided in (
        ("tensor", any(part.numbers.reduced_elements for part in model.parts)),
        ("context", any(part.numbers.key_value_elements for part in model.parts)),
        ("expert", any(part.numbers.num_experts for part in model.parts)),
    ):
        degree = getattr(workload, key)
        if degree > 1 and not is_divided:
            yield Problem((key,), f"expected 1: {model.name} has no layer that it divides", degree)
            return
    shape = model.input
    if workload.context > 1 and shape.tokens % workload.context:
        yield Problem(
            ("context",), f"expected a divisor of the {shape.tokens} tokens of {model.name}", workload.context
        )
    for part in model.parts:
        for what, number in part.numbers.divisible:
            if what != "outputs" and number % workload.tensor:
                layer = f"{what} of layer {part.name!r} of {model.name}"
                yield Problem(("tensor",), f"expected a divisor of the {number} {layer}", workload.tensor)
                return
        if part.numbers.num_experts % workload.expert:
            layer = f"experts of layer {part.name!r} of {model.name}"
            yield Problem(("expert",), f"expected a divisor of the {part.numbers.num_experts} {layer}", workload.expert)
            return
    num_stages = workload.pipeline * workload.chunks_per_stage
    try:
        cut(model, device_for(model, workload.device), num_stages)
    except ValueError as error:
        yield Problem(("pipeline",), f"{error}, for pipeline x chunks stages, got {num_stages}")
