"""Made-up results of a trace under a policy."""

from pathlib import Path

import numpy as np

from experiments.papers.traces import TraceCase, TraceSource, TraceTopology
from experiments.traces.results import Counts, GpuSeries, TraceJobResult, TraceResult
from policies.enforcement import Enforcement
from workloads.schedulers.catalogue import Scheduler


def made_up_case(policy: str, scheduler: Scheduler) -> TraceCase:
    return TraceCase(TraceSource(Path("trace"), 1, None, TraceTopology.CLOS), policy, scheduler, None)


def made_up_result(policy: str, computing: float, end_s: float | None = 200.0) -> TraceResult:
    """Of 10 GPUs all are allocated in the first interval, and one in the second; there it computes."""
    return TraceResult(
        policy=policy,
        enforcement=Enforcement.LEVELS,
        seed=1,
        gpus=20,
        ended_s=1200.0,
        jobs=(TraceJobResult("a", "GPT", 10, 0.0, 0.0, end_s, 100.0),),
        num_waiting=0,
        computed_gpu_s=600.0 * (computing + 1),
        allocated_gpu_s=600.0 * 11,
        series=GpuSeries(600.0, np.array([computing, 1.0]), np.array([10.0, 1.0])),
        counts=Counts(),
    )
