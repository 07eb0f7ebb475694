"""What policies leave of the fluid bound on a trace, at loads that are offered, and how much of what Crux leaves.

Jobs stay where and for as long as a scheduler has them by their logged times, so that all policies, and the bound, have
the same. Of the trace the part counts in which jobs that send hold most GPUs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import numpy as np

from experiments.papers import trace_cases
from experiments.papers.trace_cases import DAY_S
from experiments.papers.trace_topologies import TraceTopology
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent
from experiments.traces.results import Distribution
from experiments.traces.run import TraceOptions
from experiments.traces.stays import run_stays
from policies.registry import load_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.schedulers.catalogue import admit_by
from workloads.schedulers.cluster import Cluster
from workloads.schedulers.scheduler_name import Scheduler
from workloads.traces.offered_load import OfferedLoad
from workloads.traces.stays import busiest_part, stays
from workloads.traces.variants import Variant

POLICIES = ("ecmp", "crux", "trainyard")
LOADS = (0.6, 1.0, 1.5)
_REFERENCE = "crux"
_DASH = "\N{EN DASH}"

ASSUMPTIONS = (
    *trace_cases.ASSUMPTIONS[:1],
    "The Clos has a quarter of the paper's aggregation switches (thin-clos), unless another topology is asked for: "
    "with as much capacity up as down no link is offered more than it can carry.",
    "Jobs stay on their GPUs from when to when the scheduler has them by their logged times, however slow: all "
    "policies have the same jobs at the same places. Counted are GPUs of jobs that send, in the part of the trace "
    "(--days) in which they hold most.",
    "Load is the share of time for which the hottest link between switches is occupied if all jobs that are there "
    "iterate as if alone, spread evenly over their paths; the mean over time. The bytes of all are scaled to give it.",
    "The bound is the fluid bound of the jobs that are there, solved anew whenever these change (docs/measures.md).",
    "Slowdown is what a job would compute in its stay alone over what it computes.",
    *trace_cases.ASSUMPTIONS[2:3],
    *trace_cases.ASSUMPTIONS[4:],
)


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One run: a policy at a load. ``seed`` is that of the fabric's hash, of policies and of random placement."""

    folder: Path
    assumptions: Path
    topology: TraceTopology
    scheduler: Scheduler
    seed: int
    days: float
    load: float
    policy: str

    def __str__(self) -> str:
        return f"{self.policy} at load {self.load:g}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Utilisation of the GPUs of jobs that send; ``factor`` is by how much more they send, slowdowns are by job."""

    factor: float
    utilisation: float
    ideal: float
    bound: float
    slowdowns: tuple[float, ...]

    @property
    def left(self) -> float:
        """What is left to the bound."""
        return self.bound - self.utilisation


def measure(case: LoadCase) -> LoadResult:
    """Run it. Raises ValueError where no jobs send, the load cannot be offered or the policy cannot decide."""
    offered = _offered(replace(case, load=0.0, policy="ecmp"))
    if not offered.stays:
        raise ValueError("no job sends anything")
    factor = offered.factor(case.load)
    assumed, _ = trace_cases.load(case.folder, case.assumptions, case.topology, Variant.AS_ASSUMED)
    sending = [replace(stay, job=stay.job.sending(factor)) for stay in offered.stays]
    computed_s = run_stays(sending, assumed.fabric, load_policy(case.policy), TraceOptions(seed=case.seed))
    stays_s = np.array([stay.to_s - stay.from_s for stay in sending])
    alone_s = stays_s * [stay.job.workload.compute_s for stay in sending] / offered.alone_s(factor)
    return LoadResult(
        factor,
        float(computed_s @ [stay.job.request.gpus for stay in sending]) / offered.gpu_s,
        offered.ideal_gpu_s(factor) / offered.gpu_s,
        offered.most_gpu_s(factor) / offered.gpu_s,
        tuple((alone_s / computed_s).tolist()),
    )


@lru_cache(maxsize=1)
def _offered(case: LoadCase) -> OfferedLoad:
    """What all policies and loads have in common."""
    assumed, summary = trace_cases.load(case.folder, case.assumptions, case.topology, Variant.AS_ASSUMED)
    fabric = assumed.fabric
    everybody = stays(summary.jobs, Cluster.of_fabric(fabric), admit_by(case.scheduler, case.seed))
    routing = Routing(fabric, hash_multipliers(fabric.switches, case.seed))
    return OfferedLoad(busiest_part(everybody, case.days * DAY_S), routing)


def closed(reference: LoadResult, result: LoadResult) -> float | None:
    """The share that a run closes of what another leaves; None where that is nothing."""
    return 1 - result.left / reference.left if reference.left > 0 else None


def json_object(case: LoadCase, result: LoadResult, assumptions: tuple[str, ...]) -> dict[str, object]:
    """A run as JSON has it."""
    of = Distribution.of(np.array(result.slowdowns))
    return {
        "evaluation": "crux-trace-loads",
        "topology": case.topology,
        "scheduler": case.scheduler,
        "days": case.days,
        "seed": case.seed,
        "load": case.load,
        "policy": case.policy,
        "bytes_factor": result.factor,
        "gpu_utilisation": result.utilisation,
        "ideal_gpu_utilisation": result.ideal,
        "fluid_bound_gpu_utilisation": result.bound,
        "num_jobs": len(result.slowdowns),
        "slowdown": None if of is None else {"p50": of.p50, "p99": of.p99, "worst": of.worst},
        "assumptions": assumptions,
    }


def findings(results: Mapping[LoadCase, LoadResult], trace: str, assumptions: tuple[str, ...]) -> Findings:
    """What is finished, means over seeds."""
    loads = sorted({case.load for case in results})
    policies = list(dict.fromkeys((*POLICIES, *(case.policy for case in results))))
    policies = [policy for policy in policies if any(case.policy == policy for case in results)]
    tables, bars = [], []
    for load in loads:
        rows = []
        for policy in policies:
            if not (found := _of(results, load, policy)):
                continue
            shares = _closed(results, load, policy)
            rows.append((str(policy), *_row(list(found.values())), _mean_share(shares)))
            bars.append(Bar(f"{load:g}, {policy}", percent(u := fmean(r.utilisation for r in found.values())), u))
        columns = ("Policy", "Seeds", "Utilisation", "Bound", "Ideal", "Left, points", "p99", "Worst", "Closed")
        tables.append(
            FindingsTable(
                f"Load {load:g}: utilisation, slowdown, and what is closed of crux's rest", columns, tuple(rows)
            )
        )
    overall = [
        (str(policy), _mean_share([share for load in loads for share in _closed(results, load, policy)]))
        for policy in policies
        if policy != _REFERENCE
    ]
    tables.append(FindingsTable("All loads", ("Policy", "Closed, mean"), tuple(overall)))
    chart = BarChart("Utilisation of the GPUs of jobs that send, by load", tuple(bars))
    return Findings(f"Left to the fluid bound: {trace}", tuple(tables), (chart,), assumptions)


def _of(results: Mapping[LoadCase, LoadResult], load: float, policy: str) -> dict[int, LoadResult]:
    return {case.seed: result for case, result in results.items() if case.load == load and case.policy == policy}


def _closed(results: Mapping[LoadCase, LoadResult], load: float, policy: str) -> list[float]:
    reference = _of(results, load, _REFERENCE)
    shares = (closed(reference[seed], found) for seed, found in _of(results, load, policy).items() if seed in reference)
    return [share for share in shares if share is not None]


def _mean_share(shares: Iterable[float]) -> str:
    known = list(shares)
    return percent(fmean(known)) if known else _DASH


def _row(found: list[LoadResult]) -> tuple[str, ...]:
    of = [distribution for result in found if (distribution := Distribution.of(np.array(result.slowdowns)))]
    return (
        str(len(found)),
        percent(fmean(result.utilisation for result in found), 2),
        percent(fmean(result.bound for result in found), 2),
        percent(fmean(result.ideal for result in found), 2),
        f"{100 * fmean(result.left for result in found):.2f}",
        f"{fmean(one.p99 for one in of):.2f}",
        f"{max(one.worst for one in of):.2f}",
    )
