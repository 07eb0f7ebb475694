"""``trainyard evaluate crux-trace``, ``crux-schedulers`` and ``trace-sensitivity``."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.papers.trace_topologies import TraceTopology, assumed_on
from trainyard.cli.evaluations.shared import JsonOption, each, prepare, show
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import ReportOption, checked_policies, require_positive
from trainyard.cli.running_traces import DaysOption, SchedulerOption
from trainyard.cli.sweeping import WorkersOption
from trainyard.cli.traces import AssumptionsOption, read_assumptions, require_jobs, summary_of
from workloads.schedulers.scheduler_name import Scheduler
from workloads.traces.variants import Variant, variants_of

if TYPE_CHECKING:
    from experiments.papers.trace_cases import TraceEvaluation
    from experiments.traces.results import TraceResult

FolderArgument = Annotated[
    Path | None,
    typer.Argument(metavar="FOLDER", help="A trace as Lingjun's dataset has it. Without it: one is made up."),
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="POLICY", help="May be repeated. Without it: Figure 23's, and ours."),
]
SchedulersOption = Annotated[
    list[Scheduler] | None, typer.Option("--scheduler", help="May be repeated. Without it: affinity and random.")
]
VariantsOption = Annotated[
    list[Variant] | None, typer.Option("--variant", help="May be repeated. Without it: all that the topology has.")
]
TopologyOption = Annotated[
    TraceTopology,
    typer.Option("--topology", help="The paper's two, of which the assumptions have clos, and a Clos with less room."),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Of the made-up trace, the fabric's hash, policies and random placement.")
]


def crux_trace(
    folder: FolderArgument = None,
    policy: PoliciesOption = None,
    scheduler: SchedulersOption = None,
    days: DaysOption = None,
    seed: SeedOption = 1,
    workers: WorkersOption = None,
    topology: TopologyOption = TraceTopology.CLOS,
    assumptions: AssumptionsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Crux's simulation of a trace (Figures 23 and 24): utilisation and slowdowns under eight policies."""
    from experiments.papers.crux_trace import EVALUATION, POLICIES, SCHEDULERS

    schedulers, policies = dict.fromkeys(scheduler or SCHEDULERS), checked_policies(policy or POLICIES)
    cells = [(Variant.AS_ASSUMED, by, one) for by in schedulers for one in policies]
    _evaluate(
        EVALUATION, cells, _Asked(folder, days, seed, assumptions, topology), workers, as_json=as_json, report=report
    )


def crux_schedulers(
    folder: FolderArgument = None,
    days: DaysOption = None,
    seed: SeedOption = 1,
    workers: WorkersOption = None,
    assumptions: AssumptionsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Crux beside job schedulers (Figure 25): utilisation under each, with ecmp and with crux."""
    from experiments.papers.crux_schedulers import EVALUATION, POLICIES

    cells = [(Variant.AS_ASSUMED, by, one) for by in Scheduler for one in POLICIES]
    _evaluate(EVALUATION, cells, _Asked(folder, days, seed, assumptions), workers, as_json=as_json, report=report)


def trace_sensitivity(
    folder: FolderArgument = None,
    variant: VariantsOption = None,
    scheduler: SchedulerOption = Scheduler.RANDOM,
    days: DaysOption = None,
    seed: SeedOption = 1,
    workers: WorkersOption = None,
    topology: TopologyOption = TraceTopology.CLOS,
    assumptions: AssumptionsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """What a trace's result hangs on: ecmp and crux with one assumption at a time changed."""
    from experiments.papers.trace_sensitivity import EVALUATION, POLICIES

    possible = list(variants_of(assumed_on(topology, read_assumptions(assumptions))))
    if missing := [one for one in variant or () if one not in possible]:
        refuse(f"--variant: the assumed topology has none, got {one!r}" for one in map(str, missing))
    cells = [(one, scheduler, policy) for one in dict.fromkeys(variant or possible) for policy in POLICIES]
    _evaluate(
        EVALUATION, cells, _Asked(folder, days, seed, assumptions, topology), workers, as_json=as_json, report=report
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a trace is run on."""

    folder: Path | None
    days: float | None
    seed: int
    assumptions: Path | None
    topology: TraceTopology = TraceTopology.CLOS


def _evaluate(
    evaluation: "TraceEvaluation",
    cells: Sequence[tuple[Variant, Scheduler, str]],
    asked: _Asked,
    workers: int | None,
    *,
    as_json: bool,
    report: Path | None,
) -> None:
    from experiments.papers.trace_cases import DAY_S, MADE_UP, TraceCase, measure
    from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS

    if asked.days is not None:
        require_positive("--days", asked.days)
    until_s = None if asked.days is None else asked.days * DAY_S
    prepare(report)
    with trace_of(asked.folder, asked.seed) as folder:
        assumed = assumed_on(asked.topology, read_assumptions(asked.assumptions))
        summary = summary_of(folder, assumed)
        require_jobs(summary, folder)
        file = asked.assumptions or SHIPPED_ASSUMPTIONS
        cases = [
            TraceCase(folder, file, asked.topology, policy, scheduler, asked.seed, until_s, variant)
            for variant, scheduler, policy in cells
        ]
        named, name = evaluation.assumptions, folder.name
        if asked.folder is None:
            named, name = (f"{MADE_UP} Seed {asked.seed}.", *named), f"a made-up trace, seed {asked.seed},"
        results: dict[TraceCase, TraceResult] = {}
        try:
            for case, result in each(measure, cases, "runs", workers):
                results[case] = result
                if as_json:
                    print(json.dumps(evaluation.json_object(case, result, assumed.topology.kind, named)), flush=True)
        finally:
            if results:
                show(evaluation.findings(results, name, assumed.topology.kind, named), as_json=as_json, report=report)


@contextmanager
def trace_of(folder: Path | None, seed: int) -> Iterator[Path]:
    """The folder, or one with a trace made up, which goes away again."""
    from workloads.traces.generator import make_trace
    from workloads.traces.published import NUM_JOBS
    from workloads.traces.writing import write_trace

    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix="trainyard-") as made:
        try:
            write_trace(make_trace(NUM_JOBS, seed), Path(made))
        except OSError as error:
            fail(f"{made}: cannot be written: {error.strerror}")
        yield Path(made)
