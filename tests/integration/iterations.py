"""The start times of a job's iterations in a run."""

from experiments.scenarios.results import JobResult


def iteration_begins_s(job: JobResult) -> list[float]:
    """Return the virtual times at which iterations begin to compute, in order."""
    first_s: dict[int, float] = {}
    for interval in job.computing:
        first_s[interval.iteration] = min(interval.start_s, first_s.get(interval.iteration, interval.start_s))
    return [start_s for _, start_s in sorted(first_s.items())]
