"""A trace at offered loads: the gap to the fluid bound under each policy, and the share of Crux's gap that it closes.

Jobs stay on their GPUs for their logged times, however slow they are, so that all policies and the bound have the same
jobs in the same places. The part of the trace counts in which jobs that send hold most GPUs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Annotated

import numpy as np

from experiments.papers import traces
from experiments.papers.evaluation import Evaluation, Option, check_policies, require_positive
from experiments.papers.table_cells import DASH
from experiments.papers.traces import (
    DAY_S,
    MADE_UP,
    AssumptionsOption,
    FolderArgument,
    SchedulerOption,
    TopologyOption,
    TraceSource,
    TraceTopology,
)
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent
from experiments.traces.gpu_occupancy import run_occupancies
from experiments.traces.results import Distribution
from experiments.traces.run import TraceOptions
from policies.registry import policy_names
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.schedulers.catalogue import Scheduler, admission_function
from workloads.schedulers.cluster import Cluster
from workloads.traces.gpu_occupancy import busiest_window, gpu_occupancy
from workloads.traces.offered_load import OfferedLoad

POLICIES = ("ecmp", "crux", "trainyard")
LOADS = (0.6, 1.0, 1.5)
_REFERENCE = "crux"

ASSUMPTIONS = (
    *traces.ASSUMPTIONS[:1],
    "The Clos has a quarter of the paper's aggregation switches (thin-clos), unless another topology is asked for: "
    "with as much uplink as downlink capacity no link is offered more than it can carry.",
    "Jobs hold their GPUs for their logged times, however slow they are, so that all policies have the same jobs in "
    "the same places. Utilisation is that of GPUs of jobs that send, in the part of the trace (--days) in which these "
    "hold most GPUs.",
    "Load is the share of time for which the hottest link between switches is busy if all present jobs iterate as if "
    "alone, with flows spread evenly over their paths, averaged over time. All bytes are scaled to give it.",
    "The bound is the fluid bound of the present jobs, solved again whenever these change (docs/measures.md).",
    "Slowdown is a job's computation alone in the same time over its computation.",
    *traces.ASSUMPTIONS[2:3],
    *traces.ASSUMPTIONS[4:],
)


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One run: a trace's busiest days at a load under a policy."""

    source: TraceSource
    scheduler: Scheduler
    days: float
    load: float
    policy: str

    def __str__(self) -> str:
        return f"{self.policy} at load {self.load:g}, seed {self.source.seed}"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Utilisation of the GPUs of jobs that send, its limits, and the slowdown of every job.

    ``factor`` multiplies the bytes of all jobs to give the load. ``ideal`` and ``bound`` are limits of utilisation.
    """

    factor: float
    utilisation: float
    ideal: float
    bound: float
    slowdowns: tuple[float, ...]

    @property
    def left(self) -> float:
        """The gap between utilisation and bound."""
        return self.bound - self.utilisation


@lru_cache(maxsize=1)
def _offered(case: LoadCase) -> OfferedLoad:
    """Return what all policies and loads of a seed share."""
    assumed, summary = traces.load(case.source)
    fabric = assumed.fabric
    everybody = gpu_occupancy(
        summary.jobs, Cluster.of_fabric(fabric), admission_function(case.scheduler, case.source.seed)
    )
    routing = Routing(fabric, hash_multipliers(fabric.switches, case.source.seed))
    return OfferedLoad(busiest_window(everybody, case.days * DAY_S), routing)


def closed(reference: LoadResult, result: LoadResult) -> float | None:
    """Return the share of the reference's gap to the bound that a run closes; None where there is no gap."""
    return 1 - result.left / reference.left if reference.left > 0 else None


def _of(results: Mapping[LoadCase, LoadResult], load: float, policy: str) -> dict[int, LoadResult]:
    return {case.source.seed: result for case, result in results.items() if case.load == load and case.policy == policy}


def _closed(results: Mapping[LoadCase, LoadResult], load: float, policy: str) -> list[float]:
    reference = _of(results, load, _REFERENCE)
    shares = (closed(reference[seed], found) for seed, found in _of(results, load, policy).items() if seed in reference)
    return [share for share in shares if share is not None]


def _mean_share(shares: Iterable[float]) -> str:
    known = list(shares)
    return percent(fmean(known)) if known else DASH


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


MeasuredLoad = tuple[LoadCase, LoadResult]


@dataclass(frozen=True)
class TraceLoads(Evaluation[LoadCase, LoadResult, MeasuredLoad]):
    """The evaluation ``crux-trace-loads``."""

    unit = "runs"

    folder: FolderArgument = None
    load: Annotated[tuple[float, ...], Option("Offered load; may be repeated. Default: 0.6, 1.0 and 1.5.")] = ()
    policy: Annotated[tuple[str, ...], Option("Policy; may be repeated. Default: ecmp, crux and trainyard.")] = ()
    scheduler: SchedulerOption = Scheduler.RANDOM
    days: Annotated[float, Option("Length of the busiest part of the trace, which is measured.")] = 1.0
    seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 5
    topology: TopologyOption = TraceTopology.THIN_CLOS
    assumptions: AssumptionsOption = None

    def __post_init__(self) -> None:
        require_positive("--days", self.days)
        require_positive("--load", *sorted(self.load))
        check_policies(self.policy)

    def _source(self, seed: int) -> TraceSource:
        return TraceSource(self.folder, seed, self.assumptions, self.topology)

    @property
    def _assumptions(self) -> tuple[str, ...]:
        return ASSUMPTIONS if self.folder is not None else (f"{MADE_UP} Seeds 1 to {self.seeds}.", *ASSUMPTIONS)

    @property
    def _subject(self) -> str:
        name = f"generated traces, seeds 1 to {self.seeds}," if self.folder is None else self.folder.name
        return f"{name} placed by {self.scheduler} on {self.topology}"

    def notices(self) -> Iterable[str]:
        """Say which jobs are left out."""
        return traces.notices(traces.read(self._source(1))[1]) if self.folder is not None else ()

    def cases(self) -> Sequence[LoadCase]:
        """Return the cases seed by seed, which all loads and policies share."""
        traces.read_assumptions(self._source(1))
        return [
            LoadCase(self._source(seed), self.scheduler, self.days, load, policy)
            for seed in range(1, self.seeds + 1)
            for load in sorted(self.load or LOADS)
            for policy in self.policy or POLICIES
        ]

    @staticmethod
    def measure(case: LoadCase) -> LoadResult:
        """Run a case. Raises ValueError where no job sends, the load cannot be offered or the policy cannot decide."""
        offered = _offered(replace(case, load=0.0, policy="ecmp"))
        if not offered.occupancies:
            raise ValueError("no job sends anything")
        factor = offered.factor(case.load)
        assumed, _ = traces.load(case.source)
        sending = [replace(occupancy, job=occupancy.job.sending(factor)) for occupancy in offered.occupancies]
        computed_s = run_occupancies(sending, assumed.fabric, case.policy, TraceOptions(seed=case.source.seed))
        occupied_s = np.array([occupancy.to_s - occupancy.from_s for occupancy in sending])
        isolated_s = occupied_s * [occupancy.job.workload.compute_s for occupancy in sending] / offered.alone_s(factor)
        return LoadResult(
            factor,
            float(computed_s @ [occupancy.job.request.gpus for occupancy in sending]) / offered.gpu_s,
            offered.ideal_gpu_s(factor) / offered.gpu_s,
            offered.most_gpu_s(factor) / offered.gpu_s,
            tuple((isolated_s / computed_s).tolist()),
        )

    def combine(self, cases: Sequence[LoadCase], results: Mapping[LoadCase, LoadResult]) -> MeasuredLoad:
        """Return a case with its result."""
        return cases[0], results[cases[0]]

    def json_object(self, measured: MeasuredLoad) -> dict[str, object]:
        """Return the JSON object of a run."""
        case, result = measured
        of = Distribution.of(np.array(result.slowdowns))
        return {
            "evaluation": "crux-trace-loads",
            "topology": case.source.topology,
            "scheduler": case.scheduler,
            "days": case.days,
            "seed": case.source.seed,
            "load": case.load,
            "policy": case.policy,
            "bytes_factor": result.factor,
            "gpu_utilisation": result.utilisation,
            "ideal_gpu_utilisation": result.ideal,
            "fluid_bound_gpu_utilisation": result.bound,
            "num_jobs": len(result.slowdowns),
            "slowdown": None if of is None else {"p50": of.p50, "p99": of.p99, "worst": of.worst},
            "assumptions": self._assumptions,
        }

    def findings(self, measured: Sequence[MeasuredLoad]) -> Findings:
        """Return the findings: means over the seeds that are measured."""
        results = dict(measured)
        loads = sorted({case.load for case in results})
        policies = [
            policy
            for policy in dict.fromkeys((*POLICIES, *policy_names()))
            if any(case.policy == policy for case in results)
        ]
        tables, bars = [], []
        for load in loads:
            rows = []
            for policy in policies:
                if not (found := _of(results, load, policy)):
                    continue
                shares = _closed(results, load, policy)
                rows.append((str(policy), *_row(list(found.values())), _mean_share(shares)))
                bars.append(Bar(f"{load:g}, {policy}", percent(u := fmean(r.utilisation for r in found.values())), u))
            columns = ("Policy", "Seeds", "Utilisation", "Bound", "Ideal", "Gap, points", "p99", "Worst", "Closed")
            tables.append(
                FindingsTable(
                    f"Load {load:g}: utilisation, slowdown, and the share of crux's gap that is closed",
                    columns,
                    tuple(rows),
                )
            )
        overall = [
            (str(policy), _mean_share([share for load in loads for share in _closed(results, load, policy)]))
            for policy in policies
            if policy != _REFERENCE
        ]
        tables.append(FindingsTable("All loads", ("Policy", "Closed, mean"), tuple(overall)))
        chart = BarChart("Utilisation of the GPUs of jobs that send, by load", tuple(bars))
        return Findings(f"Gap to the fluid bound: {self._subject}", tuple(tables), (chart,), self._assumptions)
