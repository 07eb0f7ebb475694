"""A run of a trace as JSON has it."""

from dataclasses import asdict

from experiments.traces.results import Distribution, TraceResult
from policies.rates.network import FloatArray


def trace_object(result: TraceResult) -> dict[str, object]:
    """Everything that a run has shown; times in seconds, shares in parts of one."""
    return {
        "policy": result.policy,
        "enforcement": result.enforcement,
        "seed": result.seed,
        "gpus": result.gpus,
        "ended_s": result.ended_s,
        "num_done": len(result.slowdowns),
        "num_running": len(result.jobs) - len(result.slowdowns),
        "num_waiting": result.num_waiting,
        "gpu_utilisation": result.gpu_utilisation,
        "mean_gpu_utilisation": result.series.mean_utilisation,
        "cluster_utilisation": result.cluster_utilisation,
        "slowdown": _or_none(result.slowdowns),
        "run_slowdown": _or_none(result.run_slowdowns),
        "mean_queueing_s": result.mean_queueing_s,
        "counts": asdict(result.counts),
        "series": {
            "interval_s": result.series.interval_s,
            "computing_gpus": result.series.computing.tolist(),
            "allocated_gpus": result.series.allocated.tolist(),
        },
        "jobs": [
            {
                "name": job.name,
                "label": job.label,
                "gpus": job.gpus,
                "arrival_s": job.arrival_s,
                "start_s": job.start_s,
                "end_s": job.end_s,
                "ideal_run_time_s": job.ideal_run_time_s,
                "slowdown": job.slowdown,
                "run_slowdown": job.run_slowdown,
                "shared_gpus_with": job.shared_gpus_with,
            }
            for job in result.jobs
        ],
    }


def _or_none(slowdowns: FloatArray) -> dict[str, float] | None:
    found = Distribution.of(slowdowns)
    return None if found is None else asdict(found)
