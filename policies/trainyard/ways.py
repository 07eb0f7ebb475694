"""Ways of jobs through the fabric: the paths of their flows, and for how long these occupy every link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array

from policies.crux.path_selection import amounts, least_congested
from policies.flow_arrays import FloatArray, IntArray
from policies.intensity import Iteration, iterations
from policies.job import Job
from policies.traffic import Traffic
from policies.trainyard.contention import sum_rows
from policies.trainyard.options import PathRule
from topologies.fabric import Path


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """A path for every flow of a job, in order.

    Transfer u of the job occupies ``num_links[u]`` links, those inside hosts included: ``links[n]`` for ``seconds[n]``,
    transfer after transfer. Alone, an iteration takes about ``duration_s``.
    """

    paths: Sequence[Path]
    num_links: IntArray
    links: IntArray
    seconds: FloatArray
    duration_s: float


def choose_ways(
    jobs: Sequence[Job],
    kept: Mapping[str, Ways],
    rates_bps: FloatArray,
    rule: PathRule = PathRule.SMITH,
    foreign: FloatArray | float = 0.0,
) -> dict[str, Ways]:
    """Ways of all jobs by name; those of jobs in ``kept`` stay.

    The others choose flow by flow, given what was placed before and what ``foreign`` takes of every link; ties go by
    the jobs' order here. Raises ValueError, naming the job, for a transfer that takes longer than any can.
    """
    moving = [job for job in jobs if job.name not in kept]
    if not moving:
        return dict(kept)
    traffic = Traffic.with_candidates(moving)
    alone = iterations(moving, traffic.loads(len(rates_bps)).transfer_s(rates_bps))
    urgencies = [_urgency(job, iteration, rule) for job, iteration in zip(moving, alone, strict=True)]
    order = np.array(sorted(range(len(moving)), key=lambda number: -urgencies[number]), dtype=np.int64)
    placed = foreign + utilisation([kept[job.name] for job in jobs if job.name in kept], len(rates_bps))
    by = amounts(traffic, alone), rates_bps, placed, rule.rounds, rule.own_weight
    chosen = least_congested(traffic, order, *by).first_paths
    bounds = pairwise(traffic.first_flow.tolist())
    paths = [chosen[begin:end] for begin, end in bounds]
    ways = ways_along(moving, paths, rates_bps)
    return {**kept, **{job.name: way for job, way in zip(moving, ways, strict=True)}}


def _urgency(job: Job, iteration: Iteration, rule: PathRule) -> float:
    """What a job chooses paths by, most first."""
    if rule.by_intensity:
        return job.profile.work / iteration.comm_s
    window_s = max(iteration.comm_s, iteration.compute_s - iteration.ready_s)
    return job.profile.work / iteration.duration_s / window_s


def utilisation(ways: Sequence[Ways], num_links: int) -> FloatArray:
    """Share of time for which each link is used if every job iterates as if alone."""
    links = np.concatenate([np.empty(0, np.int64), *(each.links for each in ways)])
    durations_s = np.repeat([each.duration_s for each in ways], [len(each.links) for each in ways])
    shares = np.concatenate([np.empty(0), *(each.seconds for each in ways)]) / durations_s
    # Of nothing at all, the counts would be integers.
    return np.bincount(links, shares, minlength=num_links).astype(np.float64)


def occupied(ways: Sequence[Ways], num_links: int) -> csr_array:
    """Seconds of every transfer of several jobs (row) on every link (column)."""
    lengths = np.concatenate([each.num_links for each in ways])
    first = np.concatenate(([0], np.cumsum(lengths)))
    links = np.concatenate([each.links for each in ways])
    seconds = np.concatenate([each.seconds for each in ways])
    return csr_array((seconds, links, first), shape=(len(lengths), num_links))


def ways_along(jobs: Sequence[Job], paths: Sequence[Sequence[Path]], rates_bps: FloatArray) -> list[Ways]:
    """The ways of jobs whose flows take these paths, each of them the same whichever others there are."""
    windows = [job.windows for job in jobs]
    starts = np.cumsum([0, *(len(each.group_of) for each in windows)])
    transfer_of = np.concatenate([each.transfer_of + start for each, start in zip(windows, starts, strict=False)])
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
    ways = []
    for of_job, iteration, (begin, end) in zip(paths, alone, pairwise(starts.tolist()), strict=True):
        entries = slice(first[begin], first[end])
        num_links = np.diff(first[begin : end + 1])
        ways.append(Ways(tuple(of_job), num_links, links[entries], seconds[entries], iteration.duration_s))
    return ways
