"""``trainyard topology`` and ``trainyard expand``: the hosts, switches and cables of a topology file."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from rich.table import Table

from topologies.description import described
from topologies.expanding import expanded, fabric_file
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.files import shown_path
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_topology
from trainyard.cli.options import TopologyArgument
from trainyard.cli.output import number_table


def expand(file: TopologyArgument) -> None:
    """Write a topology out as a fabric file: every NIC with its addresses, every port with its number, every cable."""
    given = read_topology(file)
    try:
        specification = given if isinstance(given, FabricSpecification) else expanded(given.build())
        print(fabric_file(specification), end="")
    except ValidationError as error:
        refuse(*(f"{shown_path(file)}: {found['msg']}" for found in error.errors()))


def topology(file: TopologyArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show the cables of a topology: the nodes at their ends, with ports, and their rates."""
    accepted = read_topology(file)
    fabric = accepted.build()
    document = {"topology": accepted.model_dump(mode="json"), **described(fabric)}
    Writer(output).write(Answer(document, _rows(fabric), lambda: _cables(fabric)))


def _rows(fabric: Fabric) -> Iterator[dict[str, Any]]:
    for link in fabric.links[::2]:
        source = {"source": link.source, "source_port": link.source_port}
        yield source | {
            "destination": link.destination,
            "destination_port": link.destination_port,
            "rate_bps": link.rate_bps,
        }


def _cables(fabric: Fabric) -> Table:
    table = number_table(
        f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches, {len(fabric.cables)} cables",
        *("From", "Port", "To", "Port", "Rate"),
        left=("From", "To"),
    )
    for link in fabric.links[::2]:
        ports = str(link.source_port), str(link.destination_port)
        table.add_row(link.source, ports[0], link.destination, ports[1], f"{link.rate_bps / 1e9:g} Gbit/s")
    return table
