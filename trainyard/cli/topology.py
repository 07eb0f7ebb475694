"""``trainyard topology``: the hosts, switches and cables of a topology file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from topologies.description import described
from trainyard.cli.exits import refuse
from trainyard.cli.output import PrintableConsole, number_table
from workloads.loading import ScenarioError, load_topology

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML file with a scenario, or with only its topology key.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with the addresses of NICs, instead of a table.")]


def topology(file: FileArgument, as_json: JsonOption = False) -> None:
    """Show the cables of a topology: the nodes at their ends, with ports, and their rates."""
    try:
        accepted = load_topology(file)
    except ScenarioError as error:
        refuse(*error.messages)
    fabric = accepted.build()
    if as_json:
        print(json.dumps({"topology": accepted.model_dump(mode="json"), **described(fabric)}))
        return
    table = number_table(
        f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches, {len(fabric.cables)} cables",
        *("From", "Port", "To", "Port", "Rate"),
        left=("From", "To"),
    )
    for link in fabric.links[::2]:
        ports = str(link.source_port), str(link.destination_port)
        table.add_row(link.source, ports[0], link.destination, ports[1], f"{link.rate_bps / 1e9:g} Gbit/s")
    PrintableConsole().print(table)
