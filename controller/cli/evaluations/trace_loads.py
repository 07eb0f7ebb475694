"""``trainyard evaluate crux-trace-loads``."""

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.evaluations.shared import JsonOption, ReportOption, SeedsOption, each, prepare, show
from controller.cli.evaluations.traces import FolderArgument, trace_of
from controller.cli.exits import refuse
from controller.cli.sweeping import WorkersOption
from controller.cli.traces import AssumptionsOption, read_assumptions
from controller.evaluation.trace_topologies import TraceTopology
from controller.policy.policy_name import PolicyName
from workloads.schedulers.scheduler_name import Scheduler

if TYPE_CHECKING:
    from controller.evaluation.trace_loads import LoadResult

LoadsOption = Annotated[
    list[float] | None, typer.Option("--load", help="May be repeated. Without it: 0.6, 1.0 and 1.5.")
]
PoliciesOption = Annotated[
    list[PolicyName] | None, typer.Option("--policy", help="May be repeated. Without it: ecmp, crux and trainyard.")
]
SchedulerOption = Annotated[Scheduler, typer.Option("--scheduler", help="What chooses GPUs for jobs.")]
DaysOption = Annotated[float, typer.Option("--days", help="How long the busiest part is that counts.")]
TopologyOption = Annotated[TraceTopology, typer.Option("--topology", help="The paper's two, and one with less room.")]


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
    from controller.evaluation import trace_loads
    from controller.evaluation.trace_cases import MADE_UP
    from controller.evaluation.trace_loads import ASSUMPTIONS, LOADS, POLICIES, LoadCase, findings, json_object
    from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS

    if not 0 < days < float("inf"):
        refuse((f"--days: expected a number above 0, got {days}",))
    loads = sorted(set(load or LOADS))
    if not all(0 < one < float("inf") for one in loads):
        refuse(f"--load: expected a number above 0, got {one}" for one in loads if not 0 < one < float("inf"))
    prepare(report)
    read_assumptions(assumptions)
    named = ASSUMPTIONS if folder is not None else (f"{MADE_UP} Seeds 1 to {seeds}.", *ASSUMPTIONS)
    name = f"made-up traces, seeds 1 to {seeds}," if folder is None else folder.name
    with ExitStack() as made:
        cases = [
            LoadCase(of_seed, assumptions or SHIPPED_ASSUMPTIONS, topology, scheduler, seed, days, one, by)
            for seed in range(1, seeds + 1)
            for of_seed in (made.enter_context(trace_of(folder, seed)),)
            for one in loads
            for by in dict.fromkeys(policy or POLICIES)
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
