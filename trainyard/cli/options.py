"""Arguments and options that several commands share. Importing this module imports nothing that is slow."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.report.style import FigureFormat
from policies.enforcement import Enforcement

ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).")]
TopologyArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML file with a scenario, or with only its topology key.")
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Policy: a name that trainyard policies lists, module:attribute, or all for every one in that list. May "
        "be repeated. Default: the scenario's own policy, else crux.",
    ),
]
AllowPolicyImportOption = Annotated[
    bool,
    typer.Option(
        "--allow-policy-import",
        help="Allow input files to name a policy as module:attribute too, which runs the code of that module.",
    ),
]
EnforcementOption = Annotated[
    Enforcement,
    typer.Option(
        help="levels: with the priority levels of switches; ideal: with the policy's own rates (simulator only)."
    ),
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", dir_okay=False, help="Write an HTML page with figures.")
]
FiguresOption = Annotated[
    Path | None,
    typer.Option(
        "--figures", metavar="DIR", file_okay=False, help="Write every figure of the report, and its data as CSV."
    ),
]
FigureFormatOption = Annotated[FigureFormat, typer.Option("--figure-format", help="File format of --figures.")]
PerfettoOption = Annotated[
    Path | None,
    typer.Option(
        "--perfetto",
        metavar="FILE",
        dir_okay=False,
        help="Write what happened over time, for ui.perfetto.dev and chrome://tracing; compressed if named .gz.",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Number of worker processes. Default: the number of cores.")
]
DatabaseOption = Annotated[
    str, typer.Option("--database", metavar="URL", help="Database of the controller: a path, or an SQLAlchemy URL.")
]

DEFAULT_CONTROLLER = ["127.0.0.1:4790"]


def _addresses(given: list[str]) -> list[str]:
    """The addresses in what is given, each of which may be several with commas between, as in the environment."""
    return [address for text in given for part in text.split(",") if (address := part.strip())] or DEFAULT_CONTROLLER


ControllerOption = Annotated[
    list[str],
    typer.Option(
        "--controller",
        metavar="ADDRESS",
        envvar="TRAINYARD_CONTROLLER",
        show_envvar=False,
        callback=_addresses,
        help="HOST:PORT or unix:/PATH of the running controller. May be repeated: the active one of several answers. "
        "Default: $TRAINYARD_CONTROLLER, else 127.0.0.1:4790.",
        show_default=False,
    ),
]
