"""``trainyard sweep``: scenarios under every policy, setting and seed."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from experiments.report.numbers import count, slowdown
from experiments.report.style import FigureFormat
from experiments.scenarios.backend import Backend
from experiments.sweeps import processes
from experiments.sweeps.cases import Case
from experiments.sweeps.grid import Axis, build_grid, combinations, format_settings, format_value, read_files
from experiments.sweeps.output import Executor, Output, OutputError, missing_cases, open_output, run_cases
from experiments.sweeps.ray_cluster import ClusterError, on_ray, require_ray
from experiments.sweeps.summary import Cell, summarise
from policies.enforcement import Enforcement
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import fail, refuse, tell, terminable
from trainyard.cli.inputs import load_policies, with_all
from trainyard.cli.options import (
    AllowPolicyImportOption,
    EnforcementOption,
    FigureFormatOption,
    FiguresOption,
    PoliciesOption,
    ReportOption,
    WorkersOption,
)
from trainyard.cli.output import number_table
from trainyard.cli.report_files import ReportFiles
from trainyard.progress import counted
from workloads.loading import ScenarioError

ScenariosArgument = Annotated[list[Path], typer.Argument(metavar="SCENARIO", help="Scenario files (YAML).")]
RunsOption = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", dir_okay=False, help="File that keeps every finished run as a JSON line."),
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds, starting at 1.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE,...", help="Values of a scenario key. May be repeated, for other keys."),
]
BackendOption = Annotated[Backend, typer.Option("--on", help="Back end that runs the scenarios.")]
AddressOption = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDRESS", help="Ray cluster to run on: HOST:PORT or auto. Needs the extra ray."),
]


def sweep(
    scenarios: ScenariosArgument,
    out: RunsOption,
    policy: PoliciesOption = None,
    seeds: SeedsOption = 10,
    settings: SetOption = None,
    on: BackendOption = Backend.SIMULATOR,
    enforcement: EnforcementOption = Enforcement.LEVELS,
    workers: WorkersOption = None,
    address: AddressOption = None,
    output: OutputOption = OutputFormat.TABLE,
    report: ReportOption = None,
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Run scenarios under every policy, setting and seed; started again, it runs only what is missing."""
    execution = _execution(workers, address)
    grid = _grid(scenarios, settings or (), policy or (), seeds, on, enforcement, allow_policy_import)
    files = ReportFiles(report, figures, figure_format)
    files.prepare()
    with ExitStack() as stack:
        stack.enter_context(terminable())
        try:
            opened = stack.enter_context(open_output(out, [case.description for case in grid]))
        except OutputError as error:
            refuse(str(error))
        try:
            _run(grid, opened, out, execution)
        except (OutputError, ClusterError) as error:
            fail(str(error))
        finally:
            _show(grid, opened, files, Writer(output))
        _fail_with_the_runs(grid, opened)


def _execution(workers: int | None, address: str | None) -> Executor:
    """Return what runs the cases: worker processes, or a Ray cluster."""
    if address is None:
        return partial(processes.on_processes, workers=workers or processes.num_cores())
    require_ray()
    return partial(on_ray, address=address, workers=workers)


def _grid(
    scenarios: Sequence[Path],
    settings: Sequence[str],
    policies: Sequence[str],
    seeds: int,
    on: Backend,
    enforcement: Enforcement,
    allow_policy_import: bool,
) -> list[Case]:
    """Return the cases of the sweep, or end the command."""
    try:
        combined = list(combinations(Axis.parse(text) for text in settings))
    except ValueError as error:
        refuse(f"--set: {error}")
    if on.has_real_hosts:
        refuse(f"--on: expected emulator or simulator, as all runs on {on.value} need the machine")
    names = with_all(policies)
    load_policies(names)
    try:
        files = read_files(scenarios, allow_policy_import=allow_policy_import)
        if not names:
            load_policies(file.policy for file in files)
        return build_grid(files, combined, names, range(1, seeds + 1), on, enforcement)
    except ScenarioError as error:
        refuse(*error.messages)


def _run(grid: Sequence[Case], output: Output, path: Path, execution: Executor) -> None:
    """Run the missing cases, and say on stderr how many of them the output has already."""
    left = missing_cases(grid, output)
    if output.cut_off:
        tell(f"{path}: its last line was cut off and is dropped")
    if len(left) < len(grid):
        known = [output.lines.get(case.description.key) for case in grid]
        others = sum(line is not None and line.versions != grid[0].description.versions for line in known)
        note = f", {others} of them by other versions of Trainyard or its dependencies" if others else ""
        tell(f"{path} has {len(grid) - len(left)} of {len(grid)} runs{note}")
    with counted("runs", len(left)) as advance, closing(run_cases(left, output, execution)) as lines:
        for _ in lines:
            advance()


def _show(grid: Sequence[Case], output: Output, files: ReportFiles, writer: Writer) -> None:
    """Show the finished runs, also where the sweep was ended early."""
    rows = [cell for cell in summarise(grid, output.lines) if cell.finished or cell.failed]
    if rows or not writer.is_for_people:
        cells = [asdict(cell) for cell in rows]
        writer.write(Answer({"cells": cells}, cells, lambda: _table(rows)))
    if any(cell.finished for cell in rows):
        files.save_sweep(rows)


def _fail_with_the_runs(grid: Sequence[Case], output: Output) -> None:
    """End the command with status 1 where a run has failed."""
    failed = [line for case in grid if (line := output.lines[case.description.key]).error is not None]
    if failed:
        first = failed[0]
        setting = f" with {format_settings(first.settings)}" if first.settings else ""
        fail(
            f"{len(failed)} of {len(grid)} runs failed, the first of them "
            f"{first.scenario}{setting} under {first.policy}, seed {first.seed}: {first.error}"
        )


def _table(rows: Sequence[Cell]) -> Table:
    """Return the utilisation of every cell over its seeds; failed seeds are counted where there are any."""
    keys = list(rows[0].settings)
    some_failed = any(cell.failed for cell in rows)
    spread = ("Mean", "Deviation", "p5", "p95")
    columns = (
        "Scenario",
        *keys,
        "Policy",
        "Seeds",
        *(("Failed",) if some_failed else ()),
        *spread,
        "Limit",
        "Worst slowdown",
        "Starved",
    )
    table = number_table("GPU utilisation over seeds, in percent", *columns, left=("Policy",))
    for cell in rows:
        table.add_row(
            Text(cell.scenario),
            *(Text(format_value(cell.settings[key])) for key in keys),
            cell.policy,
            count(cell.finished),
            *((count(cell.failed),) if some_failed else ()),
            *(_in_percent(getattr(cell.gpu_utilisation, column.lower(), None)) for column in spread),
            _in_percent(cell.limit),
            slowdown(cell.worst_speed),
            count(cell.starved_jobs),
        )
    return table


def _in_percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{share * 100:.1f}"
