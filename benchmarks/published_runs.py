"""Iteration times of published training runs, from the shapes of their models and their parallelism.

Table 1 of *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM* (Narayanan et al., SC
2021): ten GPT models on 32 to 3,072 A100 GPUs. It prints FLOPs a second, which its formula of FLOPs makes iteration
times. One number is fitted, the efficiency of computation, so that one named row is met.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from workloads.combined.expansion import expand_combined, ranks_on
from workloads.combined.nccl import Collective
from workloads.combined.stages import StagePasses, cut
from workloads.combined.traffic import CollectiveTraffic
from workloads.combined_workload import CombinedWorkload
from workloads.described.timing import device_for
from workloads.placement import Placement
from workloads.task_graph import Computation, FlowSpec, TaskGraph

GPUS_PER_HOST = 8
HOST_BPS = 8 * 200e9
TOKENS, VOCABULARY = 2048, 51200
NVLINK_GBPS = 1880.0
FITTED = "39.1 B"
"""The first row with a pipeline, in the middle of the table; ``docs/workloads.md`` has what other rows give."""

ASSUMPTIONS = (
    "micro-batches of one sample, everything recomputed, pipelines interleaved in the fewest chunks that divide layers",
    "eight NICs of 200 Gbit/s a host (section 5), which a transfer has for itself",
    f"{NVLINK_GBPS:g} Gbit/s inside hosts, at which NCCL's tuning model caps rings of A100 GPUs (235 GB/s)",
    "gradients are exchanged in a ring of all replicas after the backward passes; nothing else overlaps either",
    f"one efficiency of computation for all rows, fitted to the row {FITTED}",
)

_WORKLOAD: TypeAdapter[CombinedWorkload] = TypeAdapter(CombinedWorkload)


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A row of the table."""

    name: str
    heads: int
    width: int
    layers: int
    tensor: int
    pipeline: int
    num_gpus: int
    batch: int
    flops_per_s_of_gpu: float

    @property
    def iteration_s(self) -> float:
        """The iteration time, by the paper's formula of FLOPs (equation 3)."""
        h = self.width
        flops = 96 * self.batch * TOKENS * self.layers * h**2
        flops *= 1 + TOKENS / (6 * h) + VOCABULARY / (16 * self.layers * h)
        return flops / (self.num_gpus * self.flops_per_s_of_gpu)


MEGATRON = (
    PublishedRun("1.7 B", 24, 2304, 24, 1, 1, 32, 512, 137e12),
    PublishedRun("3.6 B", 32, 3072, 30, 2, 1, 64, 512, 138e12),
    PublishedRun("7.5 B", 32, 4096, 36, 4, 1, 128, 512, 142e12),
    PublishedRun("18.4 B", 48, 6144, 40, 8, 1, 256, 1024, 135e12),
    PublishedRun("39.1 B", 64, 8192, 48, 8, 2, 512, 1536, 138e12),
    PublishedRun("76.1 B", 80, 10240, 60, 8, 4, 1024, 1792, 140e12),
    PublishedRun("145.6 B", 96, 12288, 80, 8, 8, 1536, 2304, 148e12),
    PublishedRun("310.1 B", 128, 16384, 96, 8, 16, 1920, 2160, 155e12),
    PublishedRun("529.6 B", 128, 20480, 105, 8, 35, 2520, 2520, 163e12),
    PublishedRun("1008 B", 160, 25600, 128, 8, 64, 3072, 3072, 163e12),
)


def iteration_s(run: PublishedRun, efficiency: float) -> float:
    """Return the predicted iteration time: that of one pipeline, whose replicas all do the same, and the gradients'."""
    replicas = run.num_gpus // (run.tensor * run.pipeline)
    alike = max(1, GPUS_PER_HOST // (run.tensor * run.pipeline))  # replicas of one pipeline's hosts
    one = _workload(run, efficiency, run.batch * alike // replicas)
    hosts = tuple(str(number) for number in range(run.tensor * run.pipeline * alike // GPUS_PER_HOST))
    return _alone_s(expand_combined(one, _placement(hosts))) + _gradients_s(run, efficiency)


def _gradients_s(run: PublishedRun, efficiency: float) -> float:
    workload = _workload(run, efficiency, run.batch)
    hosts = tuple(str(number) for number in range(run.num_gpus // GPUS_PER_HOST))
    ranks = ranks_on(workload, hosts, GPUS_PER_HOST)
    traffic = CollectiveTraffic(workload, ranks, _placement(hosts))
    device = device_for(workload.description, workload.device)
    stages = cut(workload.description, device, run.pipeline * workload.chunks_per_stage)
    longest_s = 0.0
    for place in range(run.pipeline):
        gradient_bytes = sum(StagePasses(workload).dense_bytes(blocks) for blocks in stages[place :: run.pipeline])
        flows = traffic.between(Collective.ALL_REDUCE, ranks.gradient_groups(place), gradient_bytes)
        longest_s = max(longest_s, _sending_s(flows))
    return longest_s


def _alone_s(graph: TaskGraph) -> float:
    """Return the time of an iteration whose transfers have the hosts' links for themselves."""
    flows = {group.name: group.flows for group in graph.flow_groups}
    ends: list[float] = []
    for task in graph.tasks:
        begin_s = max((ends[earlier] for earlier in task.after), default=0.0)
        if isinstance(task, Computation):
            ends.append(begin_s + task.duration_s)
        else:
            of = flows[task.group]
            ends.append(begin_s + _sending_s(tuple(of[number] for number in task.flows or range(len(of)))))
    return max(ends)


def _sending_s(flows: tuple[FlowSpec, ...]) -> float:
    sent: defaultdict[str, float] = defaultdict(float)
    for flow in flows:
        sent[flow.source_host] += flow.size_bytes
    return max(sent.values(), default=0.0) * 8 / HOST_BPS


@cache
def fitted_efficiency() -> float:
    """Return the efficiency with which the named row takes the published time."""
    (run,) = (run for run in MEGATRON if run.name == FITTED)
    low, high = 0.1, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if iteration_s(run, middle) > run.iteration_s else (low, middle)
    return low


def rows() -> Iterator[Mapping[str, object]]:
    """Yield a row for every run: published and predicted time, and the relative error."""
    for run in MEGATRON:
        predicted_s = iteration_s(run, fitted_efficiency())
        error = predicted_s / run.iteration_s - 1
        yield {"model": run.name, "published_s": run.iteration_s, "predicted_s": predicted_s, "error": error}


def time_errors(of: list[Mapping[str, object]]) -> tuple[float, float]:
    """Return the median and the largest error of all rows but the fitted one."""
    errors = [abs(float(str(row["error"]))) for row in of if row["model"] != FITTED]
    return statistics.median(errors), max(errors)


def _workload(run: PublishedRun, efficiency: float, batch: int) -> CombinedWorkload:
    block = [
        {"type": "norm", "bias": True},
        {"type": "attention", "heads": run.heads, "bias": True, "causal": False},
        {"type": "norm", "bias": True},
        {"type": "mlp", "hidden": 4 * run.width, "bias": True},
    ]
    layers: list[dict[str, Any]] = [
        {"type": "embedding", "vocabulary": VOCABULARY, "width": run.width, "positions": TOKENS},
        {"type": "block", "repeat": run.layers, "layers": block},
        {"type": "norm", "bias": True},
        {"type": "linear", "name": "head", "outputs": VOCABULARY, "tied": True},
    ]
    layers_of_stage = run.layers // run.pipeline
    chunks = next((number for number in (2, 3) if layers_of_stage % number == 0), 1)
    schedule = {"schedule": "interleaved", "chunks": chunks} if run.pipeline > 1 and chunks > 1 else {}
    return _WORKLOAD.validate_python(
        {
            **schedule,
            "type": "combined",
            "model": {"name": run.name, "tokens": TOKENS, "layers": layers},
            "device": {"name": "a100", "efficiency": efficiency},
            "nvlink_gbps": NVLINK_GBPS,
            "tensor": run.tensor,
            "pipeline": run.pipeline,
            "batch": batch,
            "recompute": "full",
            "all_reduce": "ring",
        }
    )


def _placement(hosts: tuple[str, ...]) -> Placement:
    numbers = tuple(range(GPUS_PER_HOST))
    return Placement(dict.fromkeys(hosts, numbers), dict.fromkeys(hosts, numbers))
