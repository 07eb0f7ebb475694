"""``trainyard trace``, ``generate-trace`` and ``run-trace``: traces of the jobs of a cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from experiments.report.numbers import count, percent, quantity
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import fail, interruptible, refuse, tell
from trainyard.cli.inputs import load_policies, with_all
from trainyard.cli.output import PrintableConsole, number_table
from trainyard.progress import progress
from workloads.field_types import LONGEST_S
from workloads.loading import ScenarioError
from workloads.schedulers.catalogue import Scheduler, admission_function
from workloads.traces import generator
from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS, Assumptions, load_assumptions
from workloads.traces.comparison import Unit, compare_with_published
from workloads.traces.csv_rows import TraceError
from workloads.traces.lingjun_writer import write_trace
from workloads.traces.statistics import TraceSummary, summarise

if TYPE_CHECKING:
    from experiments.traces.results import TraceResult
    from experiments.traces.run import TraceRun

FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Folder with job.csv, worker.csv and topo.csv, as in the Lingjun dataset."),
]
AssumptionsOption = Annotated[
    Path | None,
    typer.Option(
        "--assumptions", metavar="FILE", help="What a trace does not say. Default: the assumptions of Trainyard."
    ),
]
NumJobsOption = Annotated[int, typer.Option("--jobs", min=1, max=1_000_000, help="Number of jobs.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="The same seed generates the same trace.")]

PoliciesOption = Annotated[
    list[str],
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Policy: a name that trainyard policies lists, module:attribute, or all. May be repeated: a run for each.",
    ),
]
SchedulerOption = Annotated[Scheduler, typer.Option("--scheduler", help="Job scheduler, which places jobs on GPUs.")]
DaysOption = Annotated[
    float | None, typer.Option("--days", help="Days after which a run ends. Default: when all jobs are done.")
]
RunSeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the ECMP hash, policies and random placement.")
]
DelayOption = Annotated[
    float,
    typer.Option(
        "--reaction-delay-s",
        min=0,
        max=LONGEST_S,
        help="Seconds from an arrival or departure to the Plan that accounts for it.",
    ),
]
EveryOption = Annotated[
    bool, typer.Option("--every-iteration", help="Compute every iteration, without repeating or extrapolating any.")
]

_SHOWN_ROWS = 5
_FINDING = ("rule", "line", "detail")
_DAY_S = 86_400.0


def trace(
    folder: FolderArgument, assumptions: AssumptionsOption = None, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Show what a trace holds, what is left out of it, and how it compares with published figures."""
    _show(folder, _read_trace(folder, _read_assumptions(assumptions)), output)


def generate_trace(
    folder: FolderArgument,
    jobs: NumJobsOption = 5180,
    seed: SeedOption = 1,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Generate a trace like Lingjun's, write it to a folder in the same three files, and show how well it fits."""
    try:
        write_trace(generator.generate_trace(jobs, seed), folder)
    except FileExistsError as error:
        refuse(str(error))
    except OSError as error:
        fail(f"{folder}: cannot be written: {error.strerror}")
    _show(folder, _read_trace(folder, _read_assumptions(None)), output)


def run_trace(
    folder: FolderArgument,
    policy: PoliciesOption,
    scheduler: SchedulerOption = Scheduler.AFFINITY,
    days: DaysOption = None,
    seed: RunSeedOption = 1,
    reaction_delay_s: DelayOption = 0.01,
    every_iteration: EveryOption = False,
    assumptions: AssumptionsOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Run a trace of weeks on the simulator and show utilisation, slowdowns and how much was computed."""
    if days is not None and not 0 < days < float("inf"):
        refuse(f"--days: expected a number above 0, got {days}")
    policies = load_policies(with_all(policy))
    assumed = _read_assumptions(assumptions)
    summary = _read_trace(folder, assumed)
    _require_jobs(summary, folder)
    # The simulator brings Numba, which --help and bad input do not wait for.
    from experiments.traces.results import trace_object
    from experiments.traces.run import TraceOptions, TraceRun
    from experiments.traces.steady_state import ACCURATE, SkipOptions

    options = TraceOptions(
        seed=seed,
        reaction_delay_s=reaction_delay_s,
        until_s=None if days is None else days * _DAY_S,
        skip=ACCURATE if every_iteration else SkipOptions(),
    )
    results, problem, writer = [], None, Writer(output)
    for chosen in policies:
        run = TraceRun(summary.jobs, assumed.fabric, chosen, admission_function(scheduler, seed), options)
        problem = _run_to_end(run, f"{folder.name} under {chosen.name}")
        results.append(run.result())
        document = trace_object(results[-1]) | {"scheduler": scheduler}
        writer.write(Answer(document, [_row(document)]))
        if problem is not None:
            break
    if writer.is_for_people:
        _print_results(folder.name, scheduler, results)
    if problem is not None:
        fail(f"{problem}; the results end at {results[-1].ended_s / _DAY_S:.2f} days")


def _read_assumptions(path: Path | None) -> Assumptions:
    """Return the assumptions of a file, or those of Trainyard; ends the command where the file cannot be used."""
    try:
        return load_assumptions(path or SHIPPED_ASSUMPTIONS)
    except ScenarioError as error:
        refuse(*error.messages)


def _read_trace(folder: Path, assumed: Assumptions) -> TraceSummary:
    """Return the trace of a folder under these assumptions, or end the command."""
    try:
        return summarise(folder, assumed)
    except TraceError as error:
        refuse(str(error))


def _require_jobs(summary: TraceSummary, folder: Path) -> None:
    """Say on stderr which jobs are too large for the cluster; ends the command where no job is left."""
    if summary.too_large:
        names = ", ".join(job.request.name for job in summary.too_large)
        tell(f"left out, as they ask for more GPUs than there are: {names}")
    if not summary.jobs:
        refuse(f"{folder}: expected jobs that ran on GPUs, none is left of the trace (trainyard trace says why)")


def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document says once, without its lists."""
    return {key: value for key, value in document.items() if not isinstance(value, list)}


def _show(folder: Path, summary: TraceSummary, output: OutputFormat) -> None:
    document = _summary_object(folder, summary)
    Writer(output).write(Answer(document, document["findings"], lambda: _tables(folder, summary), _FINDING))


def _tables(folder: Path, summary: TraceSummary) -> Group:
    """Return what is left out of a trace, how it compares with published figures, and what a simulation has of it."""
    rules = number_table(f"{folder.name}: cleaning", "Rule", "Rows", "Lines", left=("Lines",))
    for rule, number in summary.trace.counts.items():
        lines = [finding.line for finding in summary.trace.findings if finding.rule is rule]
        more = ", ..." if number > _SHOWN_ROWS else ""
        rules.add_row(Text(rule.value), count(number), ", ".join(map(str, lines[:_SHOWN_ROWS])) + more)
    fit = number_table(f"{folder.name}: beside the Lingjun dataset", "Figure", "Here", "Published")
    for figure in compare_with_published(summary.statistics):
        fit.add_row(Text(figure.name), _with_unit(figure.here, figure.unit), _with_unit(figure.published, figure.unit))
    work = number_table(f"{folder.name}: for a simulation", "Jobs", "GPUs asked for", "GPU hours", "Too large")
    gpu_hours = sum(job.request.gpus * job.request.run_time_s for job in summary.jobs) / 3600
    total = sum(job.request.gpus for job in summary.jobs)
    work.add_row(count(len(summary.jobs)), count(total), quantity(gpu_hours), count(len(summary.too_large)))
    return Group(rules, fit, work)


def _with_unit(value: float | None, unit: Unit) -> str:
    match unit:
        case Unit.SHARE if value is not None:
            return percent(value)
        case Unit.MINUTES if value is not None:
            return f"{value:,.0f} min"
        case _:
            return count(None if value is None else round(value))


def _summary_object(folder: Path, summary: TraceSummary) -> dict[str, Any]:
    statistics = summary.statistics
    return {
        "folder": str(folder),
        "cleaning": {rule.name.lower(): number for rule, number in summary.trace.counts.items()},
        "findings": [
            {"rule": finding.rule.name.lower(), "line": finding.line, "detail": finding.detail}
            for finding in summary.trace.findings
        ],
        "figures": [
            {"name": figure.name, "here": figure.here, "published": figure.published}
            for figure in compare_with_published(statistics)
        ],
        "status": statistics.status,
        "models": statistics.models,
        "jobs_by_gpus": statistics.gpus,
        "submitted_by_hour": statistics.submitted_by_hour,
        "submitted_by_day": statistics.submitted_by_day,
        "jobs_for_simulation": len(summary.jobs),
        "too_large": [job.request.name for job in summary.too_large],
    }


def _run_to_end(run: "TraceRun", title: str) -> str | None:
    """Run until all jobs are done; returns what ended the run before."""
    try:
        with progress(title) as on_progress, interruptible() as is_interrupted:
            while run.step():
                on_progress(run.now_s, max(run.now_s, run.last_arrival_s))
                if is_interrupted():
                    return "interrupted"
    except ValueError as error:
        return str(error)
    return None


def _print_results(name: str, scheduler: Scheduler, results: Sequence["TraceResult"]) -> None:
    from experiments.traces.results import Distribution

    used = number_table(
        f"{name}, placed by {scheduler}: GPUs that compute", "Policy", "Of allocated", "Mean over time", "Of all",
        "Days", "Done", "Running", "Waiting", left=("Policy",),
    )  # fmt: skip
    slowed = number_table(
        f"{name}: time on GPUs over ideal", "Policy", "p50", "p99", "Worst", "Above 2x", "Above 10x", "Queueing, mean",
        left=("Policy",),
    )  # fmt: skip
    took = number_table(
        f"{name}: iterations of jobs that send", "Policy", "Decisions", "Components", "Computed", "Repeated",
        "Extrapolated", left=("Policy",),
    )  # fmt: skip
    for result in results:
        used.add_row(
            result.policy,
            percent(result.gpu_utilisation),
            percent(result.series.mean_utilisation),
            percent(result.cluster_utilisation),
            f"{result.ended_s / _DAY_S:.2f}",
            count(len(result.slowdowns)),
            count(len(result.jobs) - len(result.slowdowns)),
            count(result.num_waiting),
        )
        if (of := Distribution.of(result.run_slowdowns)) is not None:
            slowed.add_row(
                result.policy,
                *(f"{value:.3f}" for value in (of.p50, of.p99, of.worst)),
                percent(of.share_above_2),
                percent(of.share_above_10),
                f"{result.mean_queueing_s:.0f} s",
            )
        counts = result.counts
        took.add_row(
            result.policy,
            *map(count, (counts.decisions, counts.components, counts.iterations_computed)),
            *map(count, (counts.iterations_repeated, round(counts.iterations_extrapolated))),
        )
    PrintableConsole().print(used, slowed, took, sep="\n")
