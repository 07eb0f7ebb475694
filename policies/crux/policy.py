"""Crux: paths, priorities and levels by GPU intensity (Crux, section 4), and its ablations.

Objective: GPU-seconds of computation per second. Inputs: bytes of flows, candidate paths, link rates, profiles.
Enforced by levels, decided at job events. For n contending jobs and m links of candidate paths it takes O(m + n^2) for
each of the orders that compression tries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from policies.crux.compression import compress
from policies.crux.correction_factor import DEFAULT_GAINS, GainOptions, correction_factors
from policies.crux.path_selection import Congestion, select_paths
from policies.flows import FlowKey
from policies.intensity import intensity, iterations, most_intense_first
from policies.job import Job
from policies.plan import FlowPlan, JobPlan, Plan, flow_plans
from policies.plan_builder import SENDS_NOTHING, own_levels
from policies.policy import Policy
from policies.snapshot import Snapshot
from policies.traffic import Loads, Traffic


@dataclass(frozen=True, slots=True)
class CruxOptions:
    """What the paper leaves open.

    Attributes:
        congestion: How congested a path is.
        gains: How the gains behind the correction factor are measured.
        num_orders: How many orders the compression tries; None: as many as the size of the graph suggests.
    """

    congestion: Congestion = Congestion.UTILISATION
    gains: GainOptions = DEFAULT_GAINS
    num_orders: int | None = None


_DEFAULT = CruxOptions()


def crux(snapshot: Snapshot, options: CruxOptions = _DEFAULT) -> Plan:
    """Choose paths, priorities and levels: Crux-full of the paper."""
    traffic = select_paths(snapshot, options.congestion)
    return _plan(snapshot, "crux", traffic, options, is_steered=True, is_compressed=True)


def crux_ps_pa(snapshot: Snapshot, options: CruxOptions = _DEFAULT) -> Plan:
    """Choose paths and priorities (Crux-PS-PA): one level for each rank, and the lowest for all that are left."""
    traffic = select_paths(snapshot, options.congestion)
    return _plan(snapshot, "crux-ps-pa", traffic, options, is_steered=True, is_compressed=False)


def crux_pa(snapshot: Snapshot, options: CruxOptions = _DEFAULT) -> Plan:
    """Choose priorities alone (Crux-PA): flows stay on the paths of the fabric's hash; levels as for Crux-PS-PA."""
    traffic = Traffic.with_paths(snapshot.jobs, lambda flow: (flow.hashed_path,))
    return _plan(snapshot, "crux-pa", traffic, options, is_steered=False, is_compressed=False)


def compressed_levels(
    snapshot: Snapshot, loads: Loads, order: Sequence[int], intensities: Sequence[float], num_orders: int | None = None
) -> list[int]:
    """Return the levels of jobs.

    Args:
        snapshot: The links, the number of levels and the seed.
        loads: What jobs send over each link.
        order: Numbers of the jobs, most urgent first.
        intensities: Of the jobs, in the same order.
        num_orders: As of ``CruxOptions``.
    """
    sharing = loads.sharing(order, snapshot.links.has_levels)
    return compress(intensities, sharing, snapshot.num_levels, snapshot.seed, num_orders)


def _plan(
    snapshot: Snapshot,
    policy: str,
    traffic: Traffic,
    options: CruxOptions,
    *,
    is_steered: bool,
    is_compressed: bool,
) -> Plan:
    """Rank the jobs on their paths and give levels to the ranks.

    All flows of a job have its level, and its rank as their order at the host.
    """
    loads = traffic.loads(len(snapshot.links))
    ranked, reference = _rank(snapshot, loads, traffic, options.gains)
    if is_compressed:
        order = [entry.number for entry in ranked]
        intensities = [entry.intensity or 0.0 for entry in ranked]
        levels = compressed_levels(snapshot, loads, order, intensities, options.num_orders)
    else:
        levels = own_levels(len(ranked), snapshot.num_levels)
    paths = traffic.first_paths if is_steered else [None] * len(traffic.flows)
    first_flow = traffic.first_flow.tolist()
    flows: dict[FlowKey, FlowPlan] = {}
    for rank, (entry, level) in enumerate(zip(ranked, levels, strict=True)):
        of_job = slice(first_flow[entry.number], first_flow[entry.number + 1])
        flows.update(flow_plans(traffic.flows[of_job], paths[of_job], level, rank))
    jobs = tuple(
        JobPlan(
            name=entry.job.name,
            rank=rank,
            level=level,
            intensity=entry.intensity,
            correction_factor=entry.correction_factor,
            priority=entry.priority,
            time_shift_s=None,
            reason=_reason(entry, reference),
        )
        for rank, (entry, level) in enumerate(zip(ranked, levels, strict=True))
    )
    return Plan(policy, jobs, flows)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A job, by its number in the Snapshot, with its priority P = k I; None for a job that sends nothing."""

    number: int
    job: Job
    intensity: float | None
    correction_factor: float | None
    priority: float | None


def _rank(snapshot: Snapshot, loads: Loads, traffic: Traffic, gains: GainOptions) -> tuple[list[_Ranked], str]:
    """Return all jobs by decreasing priority, and the name of the reference job. Ties go by name, idle jobs come last.

    The reference job sends most bytes per iteration, ties by name.
    """
    jobs = snapshot.jobs
    if not jobs:
        return [], ""
    alone = iterations(jobs, loads.transfer_s(snapshot.links.rates_bps))
    sizes = traffic.size_bytes.tolist()
    first_flow = traffic.first_flow.tolist()
    bytes_sent = [sum(sizes[begin:end]) for begin, end in pairwise(first_flow)]
    reference = min(range(len(jobs)), key=lambda number: (-bytes_sent[number], jobs[number].name))
    factors = correction_factors(alone, alone[reference], gains)
    ranked = []
    for number, (job, iteration, factor) in enumerate(zip(jobs, alone, factors, strict=True)):
        worth = intensity(job, iteration)
        if worth is None:
            ranked.append(_Ranked(number, job, None, None, None))
        else:
            factor = 1.0 if number == reference else factor
            ranked.append(_Ranked(number, job, worth, factor, factor * worth))
    ranked.sort(key=lambda entry: most_intense_first(entry.priority, entry.job.name))
    return ranked, jobs[reference].name


def _reason(entry: _Ranked, reference: str) -> str:
    if entry.priority is None:
        return SENDS_NOTHING
    feeds = f"Each second on its bottleneck link feeds {entry.intensity:.4g} of computation"
    if entry.job.name == reference:
        return f"{feeds}: its priority. It sends most, and the others are compared with it."
    return (
        f"{feeds}. To go first is worth {entry.correction_factor:.3g} times as much link time to it as to"
        f" {reference!r}, which sends most: priority {entry.priority:.4g}."
    )


CRUX = Policy("crux", "Crux: paths, priorities and levels by GPU intensity", crux)
CRUX_PA = Policy(
    "crux-pa", "Crux's priorities alone: paths of the fabric's hash, one level per rank while levels last", crux_pa
)
CRUX_PS_PA = Policy(
    "crux-ps-pa",
    "Crux's paths and priorities without its compression: one level per rank while levels last",
    crux_ps_pa,
)
