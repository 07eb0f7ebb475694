"""``trainyard sweep``."""

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.report.style import FigureFormat
from experiments.scenarios.backend import Backend
from policies.enforcement import Enforcement
from trainyard.cli.exits import fail, refuse, terminable
from trainyard.cli.inputs import (
    AllowPolicyImportOption,
    FigureFormatOption,
    FiguresOption,
    ReportOption,
    checked_policies,
)
from trainyard.cli.outputs import ReportFiles
from trainyard.cli.running import EnforcementOption
from trainyard.progress import counted

if TYPE_CHECKING:
    from experiments.sweeps.cases import Case
    from experiments.sweeps.output import Executor, Output

ScenariosArgument = Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="YAML files of scenarios.")]
OutputOption = Annotated[
    Path, typer.Option("--output", metavar="FILE", dir_okay=False, help="A line of JSON for every run that is over.")
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="A name (see trainyard policies), or module:attribute. May be repeated. Without it: each scenario's own, "
        "else crux.",
    ),
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1 on.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE,...", help="A key of the scenarios and its values; may be repeated."),
]
BackendOption = Annotated[Backend, typer.Option("--on", help="What runs the scenarios.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Runs at a time. Without it: as many as there are cores.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="ADDRESS", help="Run on this Ray cluster, HOST:PORT or auto; needs the extra ray."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The table as a JSON object per row, nothing else.")]


def sweep(
    scenarios: ScenariosArgument,
    output: OutputOption,
    policy: PoliciesOption = None,
    seeds: SeedsOption = 10,
    settings: SetOption = None,
    on: BackendOption = Backend.SIMULATOR,
    enforcement: EnforcementOption = Enforcement.LEVELS,
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Run scenarios under every policy, setting and seed; started again, no more than what is missing."""
    from experiments.sweeps.output import OutputError, open_output
    from experiments.sweeps.ray_cluster import ClusterError

    executor = _executor(workers, address)
    grid = _grid(scenarios, settings or (), policy or (), seeds, on, enforcement, allow_policy_import)
    files = ReportFiles(report, figures, figure_format)
    files.prepare()
    with ExitStack() as stack:
        stack.enter_context(terminable())
        try:
            opened = stack.enter_context(open_output(output, [case.description for case in grid]))
        except OutputError as error:
            refuse((str(error),))
        try:
            _run(grid, opened, output, executor)
        except (OutputError, ClusterError) as error:
            fail(str(error))
        finally:
            _show(grid, opened, files, as_json=as_json)
        _fail_with_the_runs(grid, opened)


def _executor(workers: int | None, address: str | None) -> "Executor":
    from experiments.sweeps.processes import num_cores, on_processes
    from experiments.sweeps.ray_cluster import on_ray, require_ray

    if address is None:
        return partial(on_processes, workers=workers or num_cores())
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
) -> "list[Case]":
    from experiments.sweeps.grid import Axis, build_grid, combinations, read_files
    from workloads.loading import ScenarioError

    try:
        combined = list(combinations(Axis.parse(text) for text in settings))
    except ValueError as error:
        refuse((f"--set: {error}",))
    asked = checked_policies(policies)
    try:
        files = read_files(scenarios, allow_policy_import=allow_policy_import)
        if not asked:
            checked_policies(file.policy for file in files)
        return build_grid(files, combined, asked, range(1, seeds + 1), on, enforcement)
    except ScenarioError as error:
        refuse(error.messages)


def _run(grid: "Sequence[Case]", output: "Output", path: Path, executor: "Executor") -> None:
    """Run what is missing and say on stderr what is not."""
    from experiments.sweeps.output import missing_cases, run_cases

    left = missing_cases(grid, output)
    if output.cut_off:
        typer.echo(f"{path}: its last line was cut off, and is dropped", err=True)
    if len(left) < len(grid):
        known = [output.lines.get(case.description.key) for case in grid]
        others = sum(line is not None and line.versions != grid[0].description.versions for line in known)
        aside = f", {others} of them by other versions of Trainyard or what it needs" if others else ""
        typer.echo(f"{path} has {len(grid) - len(left)} of {len(grid)} runs{aside}", err=True)
    with counted("runs", len(left)) as advance, closing(run_cases(left, output, executor)) as lines:
        for _ in lines:
            advance()


def _show(grid: "Sequence[Case]", output: "Output", files: ReportFiles, *, as_json: bool) -> None:
    """What is finished, even where the sweep is not."""
    from rich.console import Console

    from experiments.sweeps.summary import summarise
    from trainyard.cli.tables import swept

    begun = [cell for cell in summarise(grid, output.lines) if cell.finished or cell.failed]
    if as_json:
        for cell in begun:
            print(json.dumps(asdict(cell)), flush=True)
    elif begun:
        Console().print(swept(begun))
    if any(cell.finished for cell in begun):
        files.save_sweep(begun)


def _fail_with_the_runs(grid: "Sequence[Case]", output: "Output") -> None:
    from experiments.sweeps.grid import format_settings

    failed = [line for case in grid if (line := output.lines[case.description.key]).error is not None]
    if failed:
        first = failed[0]
        setting = f" with {format_settings(first.settings)}" if first.settings else ""
        fail(
            f"{len(failed)} of {len(grid)} runs failed, the first of them "
            f"{first.scenario}{setting} under {first.policy}, seed {first.seed}: {first.error}"
        )
