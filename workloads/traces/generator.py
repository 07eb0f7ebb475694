"""Generator of synthetic traces in the Lingjun dataset's format, calibrated to its published figures.

``workloads.traces.sampling`` draws the jobs; a scheduler places them on a cluster with the racks of the real one.
Nothing is published about placement but the share of jobs that contend with others. ``SCATTERED_SHARE``, the share of
jobs on random hosts, is calibrated to it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from workloads.schedulers.admission import admit_in_order
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.cluster import Allocation, Cluster, ClusterState, GpuRequest, split_over_hosts
from workloads.schedulers.schedule import Run, schedule
from workloads.traces import published
from workloads.traces.lingjun import Rack
from workloads.traces.sampling import SampledJob, sample_jobs

GPUS_PER_HOST = 8
SCATTERED_SHARE = 0.92
"""Share of jobs on random hosts, the others placed by affinity; calibrated to ``published.CONTENDING_SHARE``."""

FIRST_ID = 10288
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_WORKER_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class SyntheticJob:
    """A row of ``job.csv``; times in minutes since the first day began."""

    id: int
    name: str
    sampled: SampledJob
    running_min: int | None
    ended_min: int | None


@dataclass(frozen=True, slots=True)
class SyntheticWorker:
    """A row of ``worker.csv``; times in minutes since the first day began. ``gpus`` is None without resources."""

    job: str
    name: str
    host: str
    running_min: int | None
    ended_min: int | None
    gpus: int | None


@dataclass(frozen=True, slots=True)
class SyntheticTrace:
    """The rows of the three files."""

    jobs: tuple[SyntheticJob, ...]
    workers: tuple[SyntheticWorker, ...]
    racks: Mapping[str, Rack]


def generate_trace(num_jobs: int, seed: int, scattered_share: float = SCATTERED_SHARE) -> SyntheticTrace:
    """Generate a trace; equal arguments give equal traces. Raises ValueError for less than one job."""
    if num_jobs < 1:
        raise ValueError(f"expected at least 1 job, got {num_jobs}")
    random = np.random.default_rng(seed)
    racks = _racks(random)
    sampled = sample_jobs(num_jobs, random)
    names = [f"dlc{_word(13, random)}" for _ in sampled]
    runs = _runs(sampled, names, racks, scattered_share, seed)
    jobs = tuple(
        _job(number, job, name, runs.get(name))
        for number, job, name in zip(count(FIRST_ID), sampled, names, strict=False)
    )
    workers = [worker for job in jobs for worker in _workers(job, runs.get(job.name), list(racks), random)]
    return SyntheticTrace(jobs, tuple(_without_some_resources(workers, racks, num_jobs, random)), racks)


def _racks(random: np.random.Generator) -> dict[str, Rack]:
    racks = [
        Rack("G6", aggregation, f"S{number}")
        for aggregation, sizes in published.RACK_SIZES.items()
        for number, size in enumerate(sizes, 1)
        for _ in range(size)
    ]
    return {random.bytes(32).hex(): rack for rack in racks}


def _runs(
    sampled: Sequence[SampledJob], names: Sequence[str], racks: Mapping[str, Rack], scattered_share: float, seed: int
) -> dict[str, Run]:
    """Schedule the jobs with GPUs; a full cluster may start one later than sampled."""
    end_min = max(job.submitted_min + (job.queue_min or 0) + (job.duration_min or 0) for job in sampled)
    requests = []
    for job, name in zip(sampled, names, strict=True):
        if job.gpus and job.queue_min is not None:
            running_min = job.submitted_min + job.queue_min
            run_min = max(end_min - running_min, 1) if job.duration_min is None else job.duration_min
            requests.append(
                GpuRequest(name, *split_over_hosts(job.gpus, GPUS_PER_HOST), running_min * 60.0, run_min * 60.0)
            )
    num_scattered = round(scattered_share * len(requests))
    order = np.random.default_rng((seed, 1)).permutation(len(requests))
    scattered = {requests[number].name for number in order[:num_scattered]}
    at_random = RandomPlacement(seed)

    def place(state: ClusterState, request: GpuRequest) -> Allocation | None:
        return at_random(state, request) if request.name in scattered else place_by_affinity(state, request)

    done = schedule(requests, cluster_of(racks, GPUS_PER_HOST), admit_in_order(place))
    return {run.request.name: run for run in done.runs}


def _job(number: int, sampled: SampledJob, name: str, run: Run | None) -> SyntheticJob:
    if sampled.queue_min is None:
        # A job that never ran has an end in the log, and no start.
        return SyntheticJob(number, name, sampled, None, sampled.submitted_min + 2)
    running_min = sampled.submitted_min + sampled.queue_min if run is None else round(run.start_s / 60)
    ended_min = None if sampled.duration_min is None else running_min + sampled.duration_min
    return SyntheticJob(number, name, sampled, running_min, ended_min)


def _workers(
    job: SyntheticJob, run: Run | None, hosts: Sequence[str], random: np.random.Generator
) -> Iterator[SyntheticWorker]:
    """Yield the rows of a job's workers, with the real table's oddities at their published frequency."""
    names = (f"{job.name}-{'worker' if number else 'master'}-{max(number - 1, 0)}" for number in count())
    if run is not None:
        ended_min = round(run.end_s / 60)
        for host, gpus in run.allocation.items():
            sizes = [len(gpus)] if len(gpus) in _WORKER_SIZES else [1] * len(gpus)
            for size in sizes:
                yield SyntheticWorker(job.name, next(names), host, job.running_min, ended_min, size)
    elif job.running_min is None:
        num_idle = random.poisson(published.WORKERS_WITHOUT_DURATION / published.NEVER_RAN)
        for _ in range(num_idle):
            timed = random.random() > published.WORKERS_WITHOUT_TIME / published.WORKERS_WITHOUT_DURATION
            minute = job.ended_min if timed else None
            yield SyntheticWorker(job.name, next(names), hosts[int(random.integers(len(hosts)))], minute, minute, 0)
    else:
        num_elsewhere = random.poisson(_ELSEWHERE_PER_JOB)
        for number in range(num_elsewhere + _ON_HOSTS_PER_JOB):
            host = random.bytes(32).hex() if number < num_elsewhere else hosts[int(random.integers(len(hosts)))]
            yield SyntheticWorker(job.name, next(names), host, job.running_min, job.ended_min, 0)


_JOBS_ON_PROCESSORS = published.NUM_JOBS - published.NEVER_RAN - published.NUM_GPU_JOBS
_ELSEWHERE_PER_JOB = published.WORKERS_ON_UNKNOWN_HOSTS / _JOBS_ON_PROCESSORS
_ON_HOSTS_PER_JOB = 2
"""Workers without GPUs on known hosts, for each job without GPUs: the remaining rows of the real table."""


def _without_some_resources(
    workers: Sequence[SyntheticWorker], racks: Mapping[str, Rack], num_jobs: int, random: np.random.Generator
) -> Iterator[SyntheticWorker]:
    """Remove the resources of a few rows. These have no GPUs, so no job loses any."""
    candidates = [
        number
        for number, worker in enumerate(workers)
        if worker.gpus == 0 and worker.host in racks and worker.running_min != worker.ended_min
    ]
    wanted = round(published.WORKERS_WITHOUT_RESOURCES * num_jobs / published.NUM_JOBS)
    lost = {int(number) for number in random.permutation(candidates)[:wanted]}
    for number, worker in enumerate(workers):
        if number in lost:
            yield SyntheticWorker(worker.job, worker.name, worker.host, worker.running_min, worker.ended_min, None)
        else:
            yield worker


def _word(length: int, random: np.random.Generator) -> str:
    return "".join(_DIGITS[digit] for digit in random.integers(len(_DIGITS), size=length))


def cluster_of(racks: Mapping[str, Rack], gpus_per_host: int) -> Cluster:
    """Build a cluster from racks, which form a pod if they share a group of aggregation switches; order is kept."""
    pods: defaultdict[tuple[str, str], defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for host, rack in racks.items():
        pods[rack.core, rack.aggregation][rack.tor].append(host)
    return Cluster(tuple(tuple(map(tuple, pod.values())) for pod in pods.values()), gpus_per_host)
