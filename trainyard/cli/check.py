"""``trainyard check`` and ``trainyard policies``: whether a file can be used, and which policies there are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from policies.registry import PolicyError, find_policy, is_import_string, load_policy, registrations
from topologies.problems import as_mapping
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_model, read_scenario, read_topology, read_yaml
from trainyard.cli.options import AllowPolicyImportOption

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A scenario, a model, a controller's configuration, or a fabric file (YAML)."),
]


def check(file: FileArgument, allow_policy_import: AllowPolicyImportOption = False) -> None:
    """Check a scenario, a model, a controller's configuration or a fabric file; print ok, or all that is wrong."""
    document = read_yaml(file)
    keys = as_mapping(document.contents).keys()
    # A topology that is alone in its file is a fabric file; one that names such a file is a whole configuration.
    if keys == {"topology"} and document.topology_path is None:
        read_topology(file)
    elif "layers" in keys and not keys & {"topology", "jobs"}:
        read_model(file)
    elif "topology" in keys and not keys & {"name", "jobs"}:
        _check_configuration(file, allow_policy_import=allow_policy_import)
    else:
        read_scenario(file, allow_policy_import=allow_policy_import)
    print("ok")


def _check_configuration(file: Path, *, allow_policy_import: bool) -> None:
    """Check a controller's configuration, and the files that it names, as a start of the controller would."""
    from controller.config import ConfigError, load_config  # what it needs takes long

    try:
        config = load_config(file)
    except ConfigError as error:
        refuse(*error.messages)
    from controller.process.usable_files import unusable_files  # this too

    problems = [f"{file}: {problem}" for problem in unusable_files(config)]
    if allow_policy_import or not is_import_string(config.policy):
        try:
            load_policy(config.policy)
        except PolicyError as error:
            problems.append(f"{file}: policy: {error}")
    if problems:
        refuse(*problems)


def policies(output: OutputOption = OutputFormat.TABLE) -> None:
    """List the registered policies: name, the distribution that each comes from, and what it does."""
    known = [
        {"name": each.name, "distribution": each.distribution, "summary": _summary(each.name)}
        for each in registrations()
    ]
    Writer(output).write(Answer({"policies": known}, known, lambda: _lines(known)))


def _summary(name: str) -> str:
    try:
        return find_policy(name).summary
    except PolicyError as error:
        return f"cannot be used: {error}"


def _lines(known: Sequence[Mapping[str, str]]) -> Text:
    """Return a line for every policy."""
    names, sources = (max((len(each[key]) for each in known), default=0) for key in ("name", "distribution"))
    lines = (f"{each['name']:{names}}  {each['distribution']:{sources}}  {each['summary']}" for each in known)
    return Text("\n".join(lines) or "no policies are registered: trainyard is not installed, only its files are there")
