"""What evaluations have in common: options, work on several cores, and how what was found is shown."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from trainyard.cli.exits import fail, refuse, terminable
from trainyard.cli.outputs import prepare_folder
from trainyard.progress import counted

if TYPE_CHECKING:
    from experiments.report.findings import Findings
    from experiments.scenarios.results import RunResult

T = TypeVar("T")
R = TypeVar("R")

JsonOption = Annotated[bool, typer.Option("--json", help="A JSON object for each case, on a line as it is measured.")]
MixOption = Annotated[list[str] | None, typer.Option("--mix", help="May be repeated. Without it: all of them.")]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1 on.")]


def require_known(option: str, names: Collection[str] | None, known: Collection[str]) -> None:
    """End the command where an option was given names that are not known."""
    if unknown := sorted(set(names or ()) - set(known)):
        refuse(f"{option}: expected one of {', '.join(known)}, got {name!r}" for name in unknown)


def each(work: Callable[[T], R], items: Sequence[T], what: str, workers: int | None) -> Iterator[tuple[T, R]]:
    """Do the work on several cores, and show how much of it is done; ends the command where an item fails."""
    from experiments.sweeps.execution import Failure
    from experiments.sweeps.processes import num_cores, on_processes

    processes = closing(on_processes(work, items, workers or num_cores()))
    with terminable(), counted(what, len(items)) as advance, processes as answers:
        for item, answer in answers:
            if isinstance(answer, Failure):
                fail(f"{item}: {answer.reason}")
            advance()
            yield item, answer


def prepare(report: Path | None) -> None:
    """Have a folder for the page, before anything runs."""
    if report is not None:
        prepare_folder(report.parent)


def show(
    findings: "Findings", *, as_json: bool, report: Path | None, pictures: "Sequence[Sequence[RunResult]]" = ()
) -> None:
    """Tables and assumptions on stdout, unless JSON stands there; then the page."""
    from experiments.report.findings import write_findings
    from trainyard.cli.layout import number_table

    if not as_json:
        console = Console()
        console.print(findings.title, style="bold", markup=False, highlight=False)
        for table in findings.tables:
            shown = number_table(table.title, *table.columns, left=("Policy", "Model", "Variant"))
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
