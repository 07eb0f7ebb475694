"""``trainyard evaluate crux-trace-loads``."""

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.papers.trace_topologies import TraceTopology, assumed_on
from trainyard.cli.evaluations.shared import JsonOption, SeedsOption, each, prepare, show
from trainyard.cli.evaluations.traces import FolderArgument, TopologyOption, trace_of
from trainyard.cli.inputs import ReportOption, checked_policies, require_positive
from trainyard.cli.running_traces import SchedulerOption
from trainyard.cli.sweeping import WorkersOption
from trainyard.cli.traces import AssumptionsOption, read_assumptions, require_jobs, summary_of
from workloads.schedulers.scheduler_name import Scheduler

if TYPE_CHECKING:
    from experiments.papers.trace_loads import LoadResult

LoadsOption = Annotated[
    list[float] | None, typer.Option("--load", help="May be repeated. Without it: 0.6, 1.0 and 1.5.")
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="POLICY", help="May be repeated. Without it: ecmp, crux and trainyard."),
]
DaysOption = Annotated[float, typer.Option("--days", help="How long the busiest part is that counts.")]


def crux_trace_loads(
    folder: FolderArgument = None,
    load: LoadsOption = None,
    policy: PoliciesOption = None,
    scheduler: SchedulerOption = Scheduler.RANDOM,
    days: DaysOption = 1.0,
    seeds: SeedsOption = 5,
    workers: WorkersOption = None,
    topology: TopologyOption = TraceTopology.THIN_CLOS,
    assumptions: AssumptionsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """A trace at offered loads: what policies leave of the fluid bound, and how much of crux's rest they close."""
    from experiments.papers import trace_loads
    from experiments.papers.trace_cases import MADE_UP
    from experiments.papers.trace_loads import ASSUMPTIONS, LOADS, POLICIES, LoadCase, findings, json_object
    from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS

    require_positive("--days", days)
    loads = sorted(set(load or LOADS))
    require_positive("--load", *loads)
    prepare(report)
    assumed = assumed_on(topology, read_assumptions(assumptions))
    if folder is not None:
        require_jobs(summary_of(folder, assumed), folder)
    named = ASSUMPTIONS if folder is not None else (f"{MADE_UP} Seeds 1 to {seeds}.", *ASSUMPTIONS)
    name = f"made-up traces, seeds 1 to {seeds}," if folder is None else folder.name
    with ExitStack() as made:
        cases = [
            LoadCase(of_seed, assumptions or SHIPPED_ASSUMPTIONS, topology, scheduler, seed, days, one, by)
            for seed in range(1, seeds + 1)
            for of_seed in (made.enter_context(trace_of(folder, seed)),)
            for one in loads
            for by in checked_policies(policy or POLICIES)
        ]
        results: dict[LoadCase, LoadResult] = {}
        try:
            for case, result in each(trace_loads.measure, cases, "runs", workers):
                results[case] = result
                if as_json:
                    print(json.dumps(json_object(case, result, named)), flush=True)
        finally:
            if results:
                title = f"{name} placed by {scheduler} on {topology}"
                show(findings(results, title, named), as_json=as_json, report=report)
