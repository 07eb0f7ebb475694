"""``trainyard evaluate``: what papers published, measured anew.

Every case is reported as soon as it is measured. Interrupted, or where a run fails, a command still prints and writes
what it has so far, before it ends as it would have.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from controller.cli.backend import run_all
from controller.cli.coflows import FileArgument, RecomputeOption, read_coflows
from controller.cli.exits import EXIT_STATUS, fail, refuse, terminable
from controller.cli.outputs import prepare_folder
from controller.cli.progress import counted, progress
from controller.cli.running import EnforcementOption
from controller.cli.sweeping import WorkersOption
from controller.policy.enforcement import Enforcement
from controller.run.backend import Backend
from simulator.coflow_options import CoflowPolicy, Recompute
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

if TYPE_CHECKING:
    from controller.evaluation.echelon_mixes import Kind
    from controller.evaluation.echelon_runs import RunMeasured
    from controller.evaluation.job_events import EventChange
    from controller.report.findings import Findings
    from controller.run.results import RunResult

T = TypeVar("T")
R = TypeVar("R")

JsonOption = Annotated[bool, typer.Option("--json", help="A JSON object for each case, on a line as it is measured.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", dir_okay=False, help="Write an HTML page with pictures too.")
]
MixOption = Annotated[list[str] | None, typer.Option("--mix", help="May be repeated. Without it: all of them.")]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1 on.")]
KindOption = Annotated[list[str] | None, typer.Option("--kind", help="May be repeated. Without it: all of them.")]
LoadOption = Annotated[
    list[float] | None,
    typer.Option("--load", help="Offered load of the cable, in parts of one; may be repeated. Without it: .4 and .8."),
]
BackendOption = Annotated[Backend, typer.Option("--on", help="What runs the mixes; the emulator takes minutes each.")]

evaluate = typer.Typer(help="Measure anew what papers published, and print it beside.", no_args_is_help=True)


@evaluate.command(name="crux-testbed", epilog=EXIT_STATUS)
def crux_testbed(
    mix: MixOption = None,
    seeds: SeedsOption = 10,
    on: BackendOption = Backend.SIMULATOR,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Crux's testbed (Figures 19 to 22): utilisation and iteration times under ecmp, crux and trainyard."""
    from controller.evaluation.crux_testbed import POLICIES, PUBLISHED, findings, json_object, measured

    _require_known(mix, PUBLISHED)
    _prepare(report)
    measured_mixes = []
    pictures: list[Sequence[RunResult]] = []
    try:
        for name in dict.fromkeys(mix or PUBLISHED):
            scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")
            runs: list[Sequence[RunResult]] = []
            try:
                for seed in range(1, seeds + 1):
                    seeded = scenario.model_copy(update={"seed": seed})
                    runs.append(tuple(run_all(seeded, POLICIES, on, aside=f", seed {seed} of {seeds}")))
            finally:
                if runs:
                    pictures.append(runs[0])
                    measured_mixes.append(measured(name, runs))
                    if as_json:
                        print(json.dumps(json_object(measured_mixes[-1])), flush=True)
    finally:
        if measured_mixes:
            _show(findings(measured_mixes), as_json=as_json, report=report, pictures=pictures)


@evaluate.command(epilog=EXIT_STATUS)
def coflow(
    file: FileArgument,
    recompute: RecomputeOption = Recompute.FLOW,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """The coflow benchmark, from github.com/coflow/coflow-benchmark: completion times under fair, FIFO, Varys and
    Sincronia."""
    from controller.evaluation.coflow import findings, json_object, measure

    trace = read_coflows(file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    _prepare(report)
    measured = []
    try:
        for policy in CoflowPolicy:
            with progress(f"{file.name} under {policy}"):
                measured.append(measure(trace, policy, recompute))
            if as_json:
                print(json.dumps(json_object(trace, measured[-1], recompute, sha256)), flush=True)
    finally:
        if measured:
            _show(findings(trace, measured, recompute, sha256), as_json=as_json, report=report)


@evaluate.command(epilog=EXIT_STATUS)
def churn(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many sequences of jobs, seeded from 1 on.")] = 5,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Jobs that come and go in each.")] = 50,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """What arrivals and departures of jobs change: rules, paths and levels per event, with and without damping."""
    from controller.evaluation.churn import VARIANTS, Course, changes, findings, json_object, measured
    from controller.evaluation.random_jobs import FabricName

    _prepare(report)
    # By seed, so that an interrupted evaluation has some of every policy.
    cells = [(fabric, variant) for fabric in FabricName for variant in VARIANTS]
    courses = [Course(variant, fabric, seed, jobs) for seed in range(1, seeds + 1) for fabric, variant in cells]
    found: dict[tuple[FabricName, str], dict[int, Sequence[EventChange]]] = {cell: {} for cell in cells}
    try:
        for course, events in _each(changes, courses, "courses of jobs", workers):
            found[course.fabric, course.variant][course.seed] = events
    finally:
        variants = [measured(fabric, variant, by_seed) for (fabric, variant), by_seed in found.items() if by_seed]
        if as_json:
            for variant in variants:
                print(json.dumps(json_object(variant)), flush=True)
        if variants:
            _show(findings(variants), as_json=as_json, report=report)


@evaluate.command(epilog=EXIT_STATUS)
def robustness(
    mix: MixOption = None,
    seeds: SeedsOption = 3,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Wrong numbers, jitter, late decisions and few levels: what is left of utilisation under each policy."""
    from controller.evaluation.robustness import MIXES, findings, json_object, measured, runs, share_of_limit

    _require_known(mix, MIXES)
    _prepare(report)
    shares = {}
    try:
        for run, share in _each(share_of_limit, runs(dict.fromkeys(mix or MIXES), seeds), "runs", workers):
            shares[run] = share
    finally:
        cells = measured(shares)
        if as_json:
            for cell in cells:
                print(json.dumps(json_object(cell)), flush=True)
        if cells:
            _show(findings(cells), as_json=as_json, report=report)


def _require_known(mixes: list[str] | None, known: Collection[str]) -> None:
    if unknown := sorted(set(mixes or ()) - set(known)):
        refuse(f"--mix: expected one of {', '.join(known)}, got {name!r}" for name in unknown)


def _each(work: "Callable[[T], R]", items: "Sequence[T]", what: str, workers: int | None) -> "Iterator[tuple[T, R]]":
    """Do the work on several cores, and show how much of it is done; ends the command where an item fails."""
    from controller.sweep.execution import Failure
    from controller.sweep.processes import num_cores, on_processes

    processes = closing(on_processes(work, items, workers or num_cores()))
    with terminable(), counted(what, len(items)) as advance, processes as answers:
        for item, answer in answers:
            if isinstance(answer, Failure):
                fail(f"{item}: {answer.reason}")
            advance()
            yield item, answer


@evaluate.command(epilog=EXIT_STATUS)
def echelon(
    kind: KindOption = None,
    load: LoadOption = None,
    seeds: SeedsOption = 20,
    enforcement: EnforcementOption = Enforcement.IDEAL,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """EchelonFlow beside fair sharing and coflows: iteration time, tardiness and excess tardiness of jobs that share a
    cable, and small cases against the optimum."""
    from controller.evaluation.echelon import (
        OPTIMUM,
        OPTIMUM_SEED,
        Measured,
        findings,
        gaps_measured,
        json_object,
        mixes_measured,
    )
    from controller.evaluation.echelon_mixes import LEAST_LOAD, Kind
    from controller.evaluation.open_loop_policies import CASES, tardiness_gaps

    kinds = (*Kind, OPTIMUM)
    if unknown := sorted(set(kind or ()) - set(kinds)):
        refuse(f"--kind: expected one of {', '.join(kinds)}, got {name!r}" for name in unknown)
    if wrong := [one for one in load or () if not LEAST_LOAD <= one < 1]:
        refuse(f"--load: expected at least {LEAST_LOAD:g} and less than 1, got {one:g}" for one in wrong)
    _prepare(report)
    measured: list[Measured] = []

    def keep(case: Measured) -> None:
        measured.append(case)
        if as_json:
            print(json.dumps(json_object(case)), flush=True)

    try:
        for name in dict.fromkeys(kind or kinds):
            if name == OPTIMUM:
                gaps: list[Mapping[str, float]] = []
                try:
                    with progress(what := f"{CASES} small cases against the optimum"):
                        for gap in tardiness_gaps(OPTIMUM_SEED):
                            gaps.append(gap)
                except RuntimeError as error:
                    fail(f"{what}: {error}")
                finally:
                    if gaps:
                        keep(gaps_measured(gaps))
                continue
            for one in dict.fromkeys(load or (0.4, 0.8)):
                runs: list[tuple[int, Sequence[RunMeasured]]] = []
                try:
                    for seed in range(1, seeds + 1):
                        runs.append((seed, _contend(Kind(name), one, seed, seeds, enforcement)))
                finally:
                    if runs:
                        keep(mixes_measured(Kind(name), one, enforcement, runs))
    finally:
        if measured:
            _show(findings(measured, enforcement), as_json=as_json, report=report)


def _contend(kind: "Kind", load: float, seed: int, seeds: int, enforcement: Enforcement) -> "list[RunMeasured]":
    """A mix under every contender; ends the command where a run fails."""
    from controller.evaluation.echelon_mixes import drawn_mix
    from controller.evaluation.echelon_runs import CONTENDERS, measure
    from controller.registration import RegistrationError

    scenario = drawn_mix(kind, load, seed)
    found = []
    for contender in CONTENDERS:
        what = f"{scenario.name} under {contender.name}, seed {seed} of {seeds}"
        with progress(what) as on_progress:
            try:
                found.append(measure(scenario, contender, enforcement, on_progress))
            except (RegistrationError, RuntimeError, ValueError) as error:
                fail(f"{what}: the run failed: {error}")
    return found


def _prepare(report: Path | None) -> None:
    if report is not None:
        prepare_folder(report.parent)


def _show(
    findings: "Findings", *, as_json: bool, report: Path | None, pictures: "Sequence[Sequence[RunResult]]" = ()
) -> None:
    """Tables and assumptions on stdout, unless JSON stands there; then the page."""
    from controller.cli.layout import number_table
    from controller.report.findings import write_findings

    if not as_json:
        console = Console()
        console.print(findings.title, style="bold", markup=False, highlight=False)
        for table in findings.tables:
            shown = number_table(table.title, *table.columns, left=("Policy", "Model"))
            for row in table.rows:
                shown.add_row(*row)
            console.print(shown)
        for assumption in findings.assumptions:
            console.print(f"- {assumption}", markup=False, highlight=False)
    if report is not None:
        try:
            write_findings(findings, pictures, report)
        except OSError as error:
            fail(f"{report}: cannot be written: {error.strerror}")
        Console(stderr=True).print(f"wrote {report}", markup=False, highlight=False, soft_wrap=True)
