"""Upper bounds of GPU utilisation on a fabric: the ideal and the fluid bound."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linprog

from topologies.routing import Routing
from workloads.demand import Demand, sparse_matrix
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob


def isolated_times_s(jobs: Sequence[TrainingJob], routing: Routing) -> dict[str, float]:
    """Return by job how long an iteration takes with the fabric to itself."""
    return {job.name: run_isolated(job, routing).iteration_time_s for job in jobs}


def ideal_gpu_utilisation(
    jobs: Sequence[TrainingJob],
    routing: Routing,
    allocated_gpu_seconds: Mapping[str, float] | None = None,
    isolated_s: Mapping[str, float] | None = None,
) -> float:
    """Mean of the jobs' isolated utilisations, weighted by the GPU-seconds they hold (None: by their GPUs).

    ``isolated_s`` are the isolated iteration times, where they are known.
    """
    weights = {job.name: job.gpus for job in jobs} if allocated_gpu_seconds is None else allocated_gpu_seconds
    isolated_s = isolated_times_s(jobs, routing) if isolated_s is None else isolated_s
    alone = {job.name: job.computing_gpu_seconds / job.gpus / isolated_s[job.name] for job in jobs}
    return sum(weights[name] * alone[name] for name in alone) / sum(weights[name] for name in alone)


def fluid_bound_gpu_utilisation(
    jobs: Sequence[TrainingJob],
    routing: Routing,
    presence: Mapping[str, float] | None = None,
    isolated_s: Mapping[str, float] | None = None,
) -> float:
    """Return the utilisation that no policy can exceed in a window.

    Maximises the GPU-seconds computed per second over mean iteration rates x_j, such that no link carries more than its
    rate on average; flows may split over paths. ``presence`` is the share of the window in which each job holds its
    GPUs (None: all of it); x_j is at most that share of the isolated iteration rate. ``isolated_s`` are the isolated
    iteration times, where they are known.

    Raises RuntimeError if the solver finds no optimum, ValueError if no job is ever present.
    """
    shares = [1.0 if presence is None else presence[job.name] for job in jobs]
    allocated = sum(job.gpus * share for job, share in zip(jobs, shares, strict=True))
    if not allocated:
        raise ValueError("no job holds a GPU inside the window")
    isolated_s = isolated_times_s(jobs, routing) if isolated_s is None else isolated_s
    demand = Demand.of(jobs, routing)
    value = [-job.computing_gpu_seconds for job in jobs]
    paths = [path for commodity in demand.commodity_bits for path in commodity]
    rates_bps = routing.fabric.rates_bps

    capacity = [(link, job, bits / rates_bps[link]) for (link, job), bits in demand.fixed_bits.items()]
    capacity += [
        (link, len(jobs) + number, 1e9 / rates_bps[link]) for number, path in enumerate(paths) for link in path
    ]
    conservation = []
    first = len(jobs)
    for row, (commodity, bits_of) in enumerate(demand.commodity_bits.items()):
        conservation += [(row, first + number, 1.0) for number in range(len(commodity))]
        conservation += [(row, job, -bits / 1e9) for job, bits in bits_of.items()]
        first += len(commodity)

    columns = len(jobs) + len(paths)
    result = linprog(
        np.array(value + [0.0] * len(paths)),
        A_ub=sparse_matrix(capacity, len(rates_bps), columns),
        b_ub=np.ones(len(rates_bps)),
        A_eq=sparse_matrix(conservation, len(demand.commodity_bits), columns),
        b_eq=np.zeros(len(demand.commodity_bits)),
        bounds=[(0.0, share / isolated_s[job.name]) for job, share in zip(jobs, shares, strict=True)]
        + [(0.0, None)] * len(paths),
        method="highs",
    )
    if not result.success:
        raise RuntimeError(f"fluid bound: {result.message}")
    return float(-result.fun) / allocated
