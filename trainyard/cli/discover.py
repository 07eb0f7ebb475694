"""``trainyard discover``: a fabric file from a running fabric."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from controller.discovery.survey_config import SurveyConfig
from controller.errors import DaemonError
from topologies.addressing import Prefix, address_and_length
from topologies.documents import DocumentError, read_document
from topologies.logs import log_to_stderr
from topologies.problems import problem_of_error
from trainyard.cli.exits import fail, refuse

_PIPELINE = Path(__file__).parents[2] / "p4src/build"
_SHORTEST_PREFIX = 20
"""Larger subnets would take minutes to ask through."""

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="YAML file with the key switches, as a controller's configuration has it."),
]
SubnetOption = Annotated[
    list[str] | None,
    typer.Option("--subnet", metavar="PREFIX", help="Subnet of hosts, such as 192.168.7.0/26; may be repeated."),
]
ListenOption = Annotated[
    float, typer.Option("--listen", metavar="SECONDS", min=1.0, max=600.0, help="How long to listen.")
]
LoadOption = Annotated[
    bool, typer.Option("--load-program", help="Load Trainyard's P4 program onto switches that run none.")
]


def discover(
    file: FileArgument, subnet: SubnetOption = None, listen: ListenOption = 5.0, load_program: LoadOption = False
) -> None:
    """Write a fabric file from a running fabric without a controller; what is left to fill in has a comment."""
    problems: list[str] = []
    config, subnets = _config(file, problems), []
    for text in subnet or ():
        try:
            subnets.append(_subnet(text))
        except ValueError as error:
            problems.append(f"--subnet {text}: {error}")
    if problems or config is None:
        refuse(*problems)
    # The survey brings gRPC and finsy, which --help and bad files do not wait for.
    from controller.discovery.survey_file import survey_file
    from controller.discovery.surveyor import survey

    log_to_stderr()
    logging.getLogger("finsy").setLevel(logging.CRITICAL + 1)
    try:
        found = asyncio.run(survey(config, _PIPELINE if load_program else None, subnets, listen))
    except DaemonError as error:
        fail(*str(error).split("\n"))
    print(survey_file(found, subnets), end="")


def _config(file: Path, problems: list[str]) -> SurveyConfig | None:
    try:
        document = read_document(file)
    except DocumentError as error:
        problems += error.messages
        return None
    found = list(document.problems)
    try:
        config = SurveyConfig.model_validate(document.contents)
    except ValidationError as error:
        config = None
        found += [problem_of_error(fault, document.contents, SurveyConfig) for fault in error.errors()]
    problems += document.messages(found)
    return config


def _subnet(text: str) -> Prefix:
    address, length = address_and_length(text, _SHORTEST_PREFIX)
    prefix = Prefix.around(address, length)
    if prefix.address != address:
        raise ValueError(f"expected the first address of the subnet, {prefix}")
    return prefix
