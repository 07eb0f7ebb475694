"""A made-up trace in the Lingjun dataset's format, calibrated to what was published of that; it needs no download.

Jobs of ``workloads.traces.draws`` get hosts of a cluster with the racks of the real one, at the times when they run.
How many of them lie under few switches, and how many anywhere, is set by the published share of jobs that meet others
(``SCATTERED_SHARE``): nothing else is known of the placement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from workloads.schedulers.affinity import place_by_affinity
from workloads.schedulers.at_random import RandomPlacement
from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest, host_shape
from workloads.schedulers.queue import admit_in_order
from workloads.schedulers.schedule import Run, schedule
from workloads.traces import published
from workloads.traces.draws import DrawnJob, draw_jobs
from workloads.traces.hosts import cluster_of
from workloads.traces.lingjun import Rack

GPUS_PER_HOST = 8
SCATTERED_SHARE = 0.92
"""Share of jobs on hosts anywhere, the others by affinity; calibrated to ``published.CONTENDING_SHARE``."""

FIRST_ID = 10288
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_WORKER_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class MadeJob:
    """A row of ``job.csv``; minutes since the first day began."""

    id: int
    name: str
    drawn: DrawnJob
    running_min: int | None
    ended_min: int | None


@dataclass(frozen=True, slots=True)
class MadeWorker:
    """A row of ``worker.csv``; minutes since the first day began. ``gpus`` is None for one without resources."""

    job: str
    name: str
    host: str
    running_min: int | None
    ended_min: int | None
    gpus: int | None


@dataclass(frozen=True, slots=True)
class MadeTrace:
    """The rows of the three files."""

    jobs: tuple[MadeJob, ...]
    workers: tuple[MadeWorker, ...]
    racks: Mapping[str, Rack]


def make_trace(num_jobs: int, seed: int, scattered_share: float = SCATTERED_SHARE) -> MadeTrace:
    """A trace of so many jobs; the same for the same arguments. Raises ValueError for less than one job."""
    if num_jobs < 1:
        raise ValueError(f"expected at least 1 job, got {num_jobs}")
    random = np.random.default_rng(seed)
    racks = _racks(random)
    drawn = draw_jobs(num_jobs, random)
    names = [f"dlc{_word(13, random)}" for _ in drawn]
    runs = _runs(drawn, names, racks, scattered_share, seed)
    jobs = tuple(
        _job(number, job, name, runs.get(name))
        for number, job, name in zip(count(FIRST_ID), drawn, names, strict=False)
    )
    workers = [worker for job in jobs for worker in _workers(job, runs.get(job.name), list(racks), random)]
    return MadeTrace(jobs, tuple(_without_some_resources(workers, racks, num_jobs, random)), racks)


def _racks(random: np.random.Generator) -> dict[str, Rack]:
    racks = [
        Rack("G6", aggregation, f"S{number}")
        for aggregation, sizes in published.RACK_SIZES.items()
        for number, size in enumerate(sizes, 1)
        for _ in range(size)
    ]
    return {random.bytes(32).hex(): rack for rack in racks}


def _runs(
    drawn: Sequence[DrawnJob], names: Sequence[str], racks: Mapping[str, Rack], scattered_share: float, seed: int
) -> dict[str, Run]:
    """When and where the jobs with GPUs ran; the cluster's room may make one begin later than drawn."""
    end_min = max(job.submitted_min + (job.queue_min or 0) + (job.duration_min or 0) for job in drawn)
    requests = []
    for job, name in zip(drawn, names, strict=True):
        if job.gpus and job.queue_min is not None:
            running_min = job.submitted_min + job.queue_min
            run_min = max(end_min - running_min, 1) if job.duration_min is None else job.duration_min
            requests.append(GpuRequest(name, *host_shape(job.gpus, GPUS_PER_HOST), running_min * 60.0, run_min * 60.0))
    num_scattered = round(scattered_share * len(requests))
    order = np.random.default_rng((seed, 1)).permutation(len(requests))
    scattered = {requests[number].name for number in order[:num_scattered]}
    at_random = RandomPlacement(seed)

    def place(state: ClusterState, request: GpuRequest) -> Allocation | None:
        return at_random(state, request) if request.name in scattered else place_by_affinity(state, request)

    done = schedule(requests, cluster_of(racks, GPUS_PER_HOST), admit_in_order(place))
    return {run.request.name: run for run in done.runs}


def _job(number: int, drawn: DrawnJob, name: str, run: Run | None) -> MadeJob:
    if drawn.queue_min is None:
        # The log says when it was given up, not that it began.
        return MadeJob(number, name, drawn, None, drawn.submitted_min + 2)
    running_min = drawn.submitted_min + drawn.queue_min if run is None else round(run.start_s / 60)
    ended_min = None if drawn.duration_min is None else running_min + drawn.duration_min
    return MadeJob(number, name, drawn, running_min, ended_min)


def _workers(job: MadeJob, run: Run | None, hosts: Sequence[str], random: np.random.Generator) -> Iterator[MadeWorker]:
    """Rows of a job's workers, with as many oddities as the real table has of each."""
    names = (f"{job.name}-{'worker' if number else 'master'}-{max(number - 1, 0)}" for number in count())
    if run is not None:
        ended_min = round(run.end_s / 60)
        for host, gpus in run.allocation.items():
            sizes = [len(gpus)] if len(gpus) in _WORKER_SIZES else [1] * len(gpus)
            for size in sizes:
                yield MadeWorker(job.name, next(names), host, job.running_min, ended_min, size)
    elif job.running_min is None:
        num_idle = random.poisson(published.WORKERS_WITHOUT_DURATION / published.NEVER_RAN)
        for _ in range(num_idle):
            timed = random.random() > published.WORKERS_WITHOUT_TIME / published.WORKERS_WITHOUT_DURATION
            minute = job.ended_min if timed else None
            yield MadeWorker(job.name, next(names), hosts[int(random.integers(len(hosts)))], minute, minute, 0)
    else:
        num_elsewhere = random.poisson(_ELSEWHERE_PER_JOB)
        for number in range(num_elsewhere + _ON_HOSTS_PER_JOB):
            host = random.bytes(32).hex() if number < num_elsewhere else hosts[int(random.integers(len(hosts)))]
            yield MadeWorker(job.name, next(names), host, job.running_min, job.ended_min, 0)


_JOBS_ON_PROCESSORS = published.NUM_JOBS - published.NEVER_RAN - published.NUM_GPU_JOBS
_ELSEWHERE_PER_JOB = published.WORKERS_ON_UNKNOWN_HOSTS / _JOBS_ON_PROCESSORS
_ON_HOSTS_PER_JOB = 2
"""Workers without GPUs on known hosts: what the real table's rows leave for each job that has no GPUs."""


def _without_some_resources(
    workers: Sequence[MadeWorker], racks: Mapping[str, Rack], num_jobs: int, random: np.random.Generator
) -> Iterator[MadeWorker]:
    """A few rows have lost their resources; they have no GPUs, so that no job loses any."""
    candidates = [
        number
        for number, worker in enumerate(workers)
        if worker.gpus == 0 and worker.host in racks and worker.running_min != worker.ended_min
    ]
    wanted = round(published.WORKERS_WITHOUT_RESOURCES * num_jobs / published.NUM_JOBS)
    lost = {int(number) for number in random.permutation(candidates)[:wanted]}
    for number, worker in enumerate(workers):
        if number in lost:
            yield MadeWorker(worker.job, worker.name, worker.host, worker.running_min, worker.ended_min, None)
        else:
            yield worker


def _word(length: int, random: np.random.Generator) -> str:
    return "".join(_DIGITS[digit] for digit in random.integers(len(_DIGITS), size=length))
