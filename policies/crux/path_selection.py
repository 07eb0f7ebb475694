"""Path selection (Crux, section 4.1): the most intense job chooses first, each flow its least congested path.

The paper does not say what "least congested" measures. Here a path is as congested as its most loaded link, the flow
included: an idle slow link is not as good as an idle fast one. Ties go to the path with the smaller sum over its links,
then to the earlier candidate. ``Congestion`` lists what a load may be.
"""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from policies.arrays import FloatArray, IntArray, LinkArray
from policies.intensity import Iteration, intensity, iterations, most_intense_first
from policies.jit import Kernel
from policies.lone_paths import is_slower_than_hashed, jobs_that_meet_no_other
from policies.snapshot import Snapshot
from policies.traffic import Traffic

_LESS = 1 - 1e-9
"""Loads whose ratio is above this are equal: sums of the same loads in another order differ by rounding errors."""


class Congestion(StrEnum):
    """What the flows placed so far add to a link's load."""

    UTILISATION = "utilisation"
    """Bytes per iteration over the iteration time that their job has alone, over the link's rate."""

    TRANSFER_TIME = "transfer time"
    """Bytes per iteration over the link's rate, however long the iteration."""

    FLOWS = "flows"
    """The number of flows that send anything."""


def select_paths(snapshot: Snapshot, congestion: Congestion = Congestion.UTILISATION) -> Traffic:
    """Return all flows, each with one of its candidates, chosen from scratch for all jobs.

    Where the load is a utilisation, it begins with what foreign traffic takes of each link. To order jobs before paths
    are known, intensity spreads every flow evenly over its candidates. Linear in the links of all candidate paths.

    A job that meets no other keeps the hash's paths where these make it faster, which the paper does not say.
    """
    link_rates_bps = snapshot.links.rates_bps
    traffic = Traffic.with_candidates(snapshot.jobs)
    alone = iterations(snapshot.jobs, traffic.loads(len(link_rates_bps)).transfer_s(link_rates_bps))
    keys = [
        most_intense_first(intensity(job, iteration), job.name)
        for job, iteration in zip(snapshot.jobs, alone, strict=True)
    ]
    by_intensity = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    rates = np.ones_like(link_rates_bps) if congestion is Congestion.FLOWS else link_rates_bps
    foreign = snapshot.foreign_utilisation if congestion is Congestion.UTILISATION else np.zeros(len(rates))
    selected = least_congested(traffic, by_intensity, amounts(traffic, alone, congestion), rates, foreign)
    return _kept_on_hashed(snapshot, selected)


def _kept_on_hashed(snapshot: Snapshot, selected: Traffic) -> Traffic:
    """Return jobs on the selected paths, or on the hash's where they meet no other and are faster there."""
    alone = jobs_that_meet_no_other(snapshot)
    if not alone:
        return selected
    paths, first_flow = selected.first_paths, selected.first_flow.tolist()
    for number in alone:
        job, of_job = snapshot.jobs[number], slice(first_flow[number], first_flow[number + 1])
        if is_slower_than_hashed(job, paths[of_job], snapshot.links):
            paths[of_job] = [flow.hashed_path for flow in job.flows]
    path_of = {flow.key: path for flow, path in zip(selected.flows, paths, strict=True)}
    return Traffic.with_paths(snapshot.jobs, lambda flow: (path_of[flow.key],))


def least_congested(
    traffic: Traffic,
    order: IntArray,
    amounts: FloatArray,
    rates: FloatArray,
    load: FloatArray,
    rounds: int = 1,
    own_weight: float = 1.0,
    *,
    calls: int = 1,
) -> Traffic:
    """Return every flow with the candidate that is the least congested with it; ties go as the module says.

    Args:
        traffic: The flows with their candidates.
        order: Numbers of jobs, in the order in which they choose.
        amounts: By flow, what it adds to the load of a link of rate 1.
        rates: By link.
        load: By link, the load at the start.
        rounds: From the second round on, a flow moves to a candidate whose most loaded link is less loaded, given the
            paths of all others.
        own_weight: How much other flows of the same job weigh, at least 1. A job spreads its flows more evenly with
            more.
        calls: How often the caller will call it: many calls are worth machine code.
    """
    choose = _choose.for_steps(3 * rounds * len(traffic.links) * calls)
    where = traffic.links, traffic.first_link, traffic.path_length
    shares = load.copy(), own_weight - 1
    return traffic.narrowed(choose(order, traffic.first_flow, amounts, *where, rates, *shares, rounds))


def amounts(
    traffic: Traffic, alone: Sequence[Iteration], congestion: Congestion = Congestion.UTILISATION
) -> FloatArray:
    """Return by flow what it adds to the load of a link of rate 1."""
    if congestion is Congestion.FLOWS:
        return (traffic.size_bytes > 0).astype(np.float64)
    amounts = traffic.size_bytes * 8
    if congestion is Congestion.UTILISATION:
        # A job that takes no time sends nothing.
        durations_s = np.array([iteration.duration_s or 1.0 for iteration in alone])
        amounts /= np.repeat(durations_s, np.diff(traffic.first_flow))
    return amounts


@Kernel
def _choose(
    by_intensity: IntArray,
    first_flow: IntArray,
    amounts: FloatArray,
    links: LinkArray,
    first_link: IntArray,
    path_length: IntArray,
    rates: FloatArray,
    load: FloatArray,
    more_for_own: float,
    rounds: int,
) -> IntArray:
    """Return by flow the position of its least congested path; jobs choose in the order of ``by_intensity``."""
    choice = np.zeros(len(amounts), dtype=np.int64)
    own = np.zeros(len(load))
    for turn in range(rounds * len(by_intensity)):
        job, is_first = by_intensity[turn % len(by_intensity)], turn < len(by_intensity)
        flows = range(first_flow[job], first_flow[job + 1])
        if more_for_own > 0 and not is_first:
            for flow in flows:
                chosen = first_link[flow] + choice[flow] * path_length[flow]
                for link in links[chosen : chosen + path_length[flow]]:
                    if link >= 0:
                        own[link] += more_for_own * amounts[flow] / rates[link]
        for flow in flows:
            begin, length = first_link[flow], path_length[flow]
            num_paths = (first_link[flow + 1] - begin) // length
            least_most, least_sum = np.inf, np.inf
            if not is_first:
                chosen = begin + choice[flow] * length
                least_most, least_sum = 0.0, 0.0
                for link in links[chosen : chosen + length]:
                    if link >= 0:
                        added = amounts[flow] / rates[link]
                        load[link] = max(load[link] - added, 0.0)
                        own[link] = max(own[link] - more_for_own * added, 0.0)
                        least_most = max(least_most, load[link] + own[link] + added)
            for path in range(num_paths if num_paths > 1 else 0):
                most, total = 0.0, 0.0
                for link in links[begin + path * length : begin + (path + 1) * length]:
                    if link >= 0:
                        with_flow = load[link] + own[link] + amounts[flow] / rates[link]
                        total += with_flow
                        most = max(most, with_flow)
                if most < least_most * _LESS or (most * _LESS <= least_most and total < least_sum * _LESS):
                    least_most, least_sum = most, total
                    choice[flow] = path
            if amounts[flow] > 0:
                chosen = begin + choice[flow] * length
                for link in links[chosen : chosen + length]:
                    if link >= 0:
                        load[link] += amounts[flow] / rates[link]
                        own[link] += more_for_own * amounts[flow] / rates[link]
        if more_for_own > 0:
            for flow in flows:
                for link in links[first_link[flow] : first_link[flow + 1]]:
                    if link >= 0:
                        own[link] = 0.0
    return choice
