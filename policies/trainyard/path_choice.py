"""Paths for all flows of a job, and how long these occupy every link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array

from policies.arrays import FloatArray, IntArray
from policies.crux.path_selection import amounts, least_congested
from policies.intensity import Iteration, iterations
from policies.job import Job
from policies.traffic import Traffic
from policies.trainyard.contention import sum_rows
from policies.trainyard.options import PathRule
from topologies.fabric import Path


@dataclass(frozen=True, slots=True, eq=False)
class PathChoice:
    """A path for every flow of a job.

    Attributes:
        paths: By flow, in the order of ``Job.flows``.
        num_links: By transfer, how many links it occupies, those inside hosts included.
        links: The links that the transfers occupy, transfer after transfer.
        seconds: By entry of ``links``, how long the transfer occupies the link.
        duration_s: The time of an iteration when the job runs alone.
    """

    paths: Sequence[Path]
    num_links: IntArray
    links: IntArray
    seconds: FloatArray
    duration_s: float


def choose_paths(
    jobs: Sequence[Job],
    kept: Mapping[str, PathChoice],
    rates_bps: FloatArray,
    rule: PathRule = PathRule.SMITH,
    foreign: FloatArray | float = 0.0,
) -> dict[str, PathChoice]:
    """Return the paths of all jobs by name; jobs in ``kept`` keep theirs.

    The others choose flow by flow the candidate whose most used link is used least. Ties go by the order of the jobs.

    Args:
        jobs: The jobs.
        kept: The paths of jobs that keep theirs.
        rates_bps: By link, its rate.
        rule: In which order and how often jobs choose.
        foreign: By link, the share of its rate that other traffic takes.

    Raises:
        ValueError: A transfer takes too long; the message names the job.
    """
    moving = [job for job in jobs if job.name not in kept]
    if not moving:
        return dict(kept)
    traffic = Traffic.with_candidates(moving)
    alone = iterations(moving, traffic.loads(len(rates_bps)).transfer_s(rates_bps))
    urgencies = [_urgency(job, iteration, rule) for job, iteration in zip(moving, alone, strict=True)]
    order = np.array(sorted(range(len(moving)), key=lambda number: -urgencies[number]), dtype=np.int64)
    placed = foreign + _utilisation([kept[job.name] for job in jobs if job.name in kept], len(rates_bps))
    by = amounts(traffic, alone), rates_bps, placed, rule.rounds, rule.own_weight
    chosen = least_congested(traffic, order, *by).first_paths
    bounds = pairwise(traffic.first_flow.tolist())
    choices = path_choices(moving, [chosen[begin:end] for begin, end in bounds], rates_bps)
    return {**kept, **{job.name: choice for job, choice in zip(moving, choices, strict=True)}}


def path_choices(jobs: Sequence[Job], paths: Sequence[Sequence[Path]], rates_bps: FloatArray) -> list[PathChoice]:
    """Return the choices of jobs whose flows take these paths. A job's choice depends on no other job."""
    transfers = [job.transfers for job in jobs]
    starts = np.cumsum([0, *(len(each.group_of) for each in transfers)])
    transfer_of = np.concatenate([each.transfer_of + start for each, start in zip(transfers, starts, strict=False)])
    sizes = np.concatenate([job.arrays.size_bytes for job in jobs])
    hops = np.fromiter(map(len, chain.from_iterable(paths)), np.int64, len(sizes))
    host_hops = np.concatenate([job.arrays.num_host_links for job in jobs])
    on_paths = np.fromiter(chain.from_iterable(chain.from_iterable(paths)), np.int64, int(hops.sum()))
    links = np.concatenate((on_paths, *(job.arrays.host_links for job in jobs)))
    rows = np.concatenate((np.repeat(transfer_of, hops), np.repeat(transfer_of, host_hops)))
    with np.errstate(over="ignore"):
        seconds = np.concatenate((np.repeat(sizes, hops), np.repeat(sizes, host_hops))) * 8 / rates_bps[links]
    by_transfer = coo_array((seconds, (rows, links)), shape=(int(starts[-1]), len(rates_bps))).tocsr()
    by_transfer.eliminate_zeros()
    by_job = sum_rows(csr_array(by_transfer), starts)
    alone = iterations(jobs, by_job.max(axis=1).toarray().ravel())
    first, links, seconds = by_transfer.indptr, by_transfer.indices.astype(np.int64), by_transfer.data
    choices = []
    for of_job, iteration, (begin, end) in zip(paths, alone, pairwise(starts.tolist()), strict=True):
        entries = slice(first[begin], first[end])
        num_links = np.diff(first[begin : end + 1])
        choices.append(PathChoice(tuple(of_job), num_links, links[entries], seconds[entries], iteration.duration_s))
    return choices


def occupied_seconds(choices: Sequence[PathChoice], num_links: int) -> csr_array:
    """Return the seconds for which each transfer of several jobs (row) occupies each link (column)."""
    lengths = np.concatenate([each.num_links for each in choices])
    first = np.concatenate(([0], np.cumsum(lengths)))
    links = np.concatenate([each.links for each in choices])
    seconds = np.concatenate([each.seconds for each in choices])
    return csr_array((seconds, links, first), shape=(len(lengths), num_links))


def _urgency(job: Job, iteration: Iteration, rule: PathRule) -> float:
    """Return the key by which jobs choose paths, the largest first."""
    if rule.by_intensity:
        return job.profile.work / iteration.comm_s
    window_s = max(iteration.comm_s, iteration.compute_s - iteration.ready_s)
    return job.profile.work / iteration.duration_s / window_s


def _utilisation(choices: Sequence[PathChoice], num_links: int) -> FloatArray:
    """Return the share of time for which each link is used if every job iterates as if alone."""
    links = np.concatenate([np.empty(0, np.int64), *(each.links for each in choices)])
    durations_s = np.repeat([each.duration_s for each in choices], [len(each.links) for each in choices])
    shares = np.concatenate([np.empty(0), *(each.seconds for each in choices)]) / durations_s
    # Without weights, bincount would return integers.
    return np.bincount(links, shares, minlength=num_links).astype(np.float64)
