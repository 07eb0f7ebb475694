"""``trainyard trace`` and ``trainyard generate-trace``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from trainyard.cli.exits import fail, refuse
from workloads.loading import ScenarioError

if TYPE_CHECKING:
    from workloads.traces.assumptions import Assumptions
    from workloads.traces.comparison import Unit
    from workloads.traces.statistics import TraceSummary

FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder of job.csv, worker.csv and topo.csv, as Lingjun's dataset has.")
]
AssumptionsOption = Annotated[
    Path | None, typer.Option("--assumptions", metavar="FILE", help="What a trace does not say; ours unless given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, with every finding, instead of tables.")]
NumJobsOption = Annotated[int, typer.Option("--jobs", min=1, max=1_000_000, help="How many jobs to make.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="The same seed makes the same trace.")]

_SHOWN_ROWS = 5


def trace(folder: FolderArgument, assumptions: AssumptionsOption = None, as_json: JsonOption = False) -> None:
    """Say what a folder with a trace holds, what of it can be used, and how it compares with what was published."""
    _show(folder, assumptions, as_json=as_json)


def generate_trace(
    folder: FolderArgument,
    jobs: NumJobsOption = 5180,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Make up a trace like Lingjun's, write it to a folder in the same three files, and show how well it fits."""
    from workloads.traces.generator import generate_trace
    from workloads.traces.lingjun_writer import write_trace

    try:
        write_trace(generate_trace(jobs, seed), folder)
    except FileExistsError as error:
        refuse((str(error),))
    except OSError as error:
        fail(f"{folder}: cannot be written: {error.strerror}")
    _show(folder, None, as_json=as_json)


def read_assumptions(path: Path | None) -> "Assumptions":
    """A file of assumptions, ours where there is none; ends the command with what is wrong with it."""
    # Traces need numpy; --help and bad options do not.
    from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS, load_assumptions

    try:
        return load_assumptions(path or SHIPPED_ASSUMPTIONS)
    except ScenarioError as error:
        refuse(error.messages)


def load_summary(folder: Path, assumptions: Path | None) -> "tuple[Assumptions, TraceSummary]":
    """A folder's trace under a file of assumptions, ours where there is none; ends the command with what is wrong."""
    assumed = read_assumptions(assumptions)
    return assumed, summary_of(folder, assumed)


def summary_of(folder: Path, assumed: "Assumptions") -> "TraceSummary":
    """A folder's trace under assumptions; ends the command where it is none."""
    from workloads.traces.csv_rows import TraceError
    from workloads.traces.statistics import summarise

    try:
        return summarise(folder, assumed)
    except TraceError as error:
        refuse((str(error),))


def require_jobs(summary: "TraceSummary", folder: Path) -> None:
    """Say on stderr which jobs ask for too much; ends the command where none is left to simulate."""
    if summary.too_large:
        names = ", ".join(job.request.name for job in summary.too_large)
        typer.echo(f"left out, as they ask for more GPUs than there are: {names}", err=True)
    if not summary.jobs:
        refuse((f"{folder}: expected jobs that ran on GPUs, none is left of the trace (trainyard trace says why)",))


def _show(folder: Path, assumptions: Path | None, *, as_json: bool) -> None:
    summary = load_summary(folder, assumptions)[1]
    if as_json:
        print(json.dumps(_document(folder, summary)))
    else:
        _print_tables(folder, summary)


def _print_tables(folder: Path, summary: "TraceSummary") -> None:
    from experiments.report.numbers import count, quantity
    from trainyard.cli.layout import number_table
    from workloads.traces.comparison import compare_with_published

    rules = number_table(f"{folder.name}: cleaning", "Rule", "Rows", "Lines", left=("Lines",))
    for rule, number in summary.trace.counts.items():
        lines = [finding.line for finding in summary.trace.findings if finding.rule is rule]
        more = ", ..." if number > _SHOWN_ROWS else ""
        rules.add_row(Text(rule.value), count(number), ", ".join(map(str, lines[:_SHOWN_ROWS])) + more)
    fit = number_table(f"{folder.name}: beside the Lingjun dataset", "Figure", "Here", "Published")
    for figure in compare_with_published(summary.statistics):
        fit.add_row(Text(figure.name), _written(figure.here, figure.unit), _written(figure.published, figure.unit))
    work = number_table(f"{folder.name}: for a simulation", "Jobs", "GPUs asked for", "GPU hours", "Too large")
    gpu_hours = sum(job.request.gpus * job.request.run_time_s for job in summary.jobs) / 3600
    total = sum(job.request.gpus for job in summary.jobs)
    work.add_row(count(len(summary.jobs)), count(total), quantity(gpu_hours), count(len(summary.too_large)))
    Console().print(rules, fit, work, sep="\n")


def _written(value: float | None, unit: "Unit") -> str:
    from experiments.report.numbers import count, percent
    from workloads.traces.comparison import Unit

    match unit:
        case Unit.SHARE if value is not None:
            return percent(value)
        case Unit.MINUTES if value is not None:
            return f"{value:,.0f} min"
        case _:
            return count(None if value is None else round(value))


def _document(folder: Path, summary: "TraceSummary") -> dict[str, Any]:
    from workloads.traces.comparison import compare_with_published

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
