"""What runs leave behind: tables on stdout, a page in a file."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from experiments.scenarios.results import RunResult
from trainyard.cli.exits import fail, refuse


def print_results(results: Sequence[RunResult]) -> None:
    """Print what people want to know of the results, compared with the first."""
    from trainyard.cli.tables import between_events, iteration_times, utilisation

    tables = [utilisation(results), iteration_times(results)]
    if results[0].events:
        tables.append(between_events(results))
    Console().print(*tables, sep="\n")


def print_overview(comparisons: Sequence[Sequence[RunResult]]) -> None:
    """Print the utilisation of every scenario under every policy; the policies are the same for all."""
    from trainyard.cli.tables import overview

    Console().print(overview(comparisons))


def prepare_folder(folder: Path) -> None:
    """Make a folder for a page, before the run that fills it; ends the command where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse((f"{folder}: cannot be made: {error.strerror}",))


def save_report(comparisons: Sequence[Sequence[RunResult]], path: Path) -> None:
    """Write the page of one or more scenarios and say on stderr where; ends the command where that fails."""
    from experiments.report.page import write_report

    try:
        write_report(comparisons, path)
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")
    Console(stderr=True).print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
