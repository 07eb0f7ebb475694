"""Results as one JSON object per policy, with the keys that programs rely on."""

from typing import Any

from experiments.scenarios.results import RunResult


def run_object(result: RunResult) -> dict[str, Any]:
    """The object that ``trainyard run --json`` prints."""
    return {
        "scenario": result.scenario,
        "policy": result.policy,
        "backend": result.backend,
        "enforcement": result.enforcement,
        "gpu_utilisation": result.gpu_utilisation,
        "ideal_gpu_utilisation": result.ideal_gpu_utilisation,
        "fluid_bound_gpu_utilisation": result.fluid_bound_gpu_utilisation,
        "jobs": [
            {
                "name": job.name,
                "profile": job.profile,
                "iteration_time_s": job.iteration_time_s,
                "ideal_iteration_time_s": job.ideal_iteration_time_s,
                "jct_s": job.jct_s,
                "intensity": job.intensity,
                "correction_factor": job.correction_factor,
                "priority": job.priority,
                "level": job.level,
            }
            for job in result.jobs
        ],
        "flow_groups": [
            {
                "job": group.job,
                "group": group.group,
                "tardiness_s": group.tardiness_s,
                "excess_tardiness_s": group.excess_tardiness_s,
            }
            for group in result.flow_groups
        ],
        "total_tardiness_s": result.total_tardiness_s,
        "stretches": [
            {"from_s": stretch.from_s, "to_s": stretch.to_s, "gpu_utilisation": stretch.gpu_utilisation}
            for stretch in result.stretches
        ],
    }
