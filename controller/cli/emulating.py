"""``trainyard emulator``."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from controller.cli.exits import fail, refuse
from controller.cli.progress import progress
from controller.config import check_host_port
from p4src import P4INFO, PROGRAM
from workloads.loading import ScenarioError, load_topology

TopologyOption = Annotated[
    Path, typer.Option("--topology", metavar="FILE", help="YAML file with a scenario, or with its topology: alone.")
]
P4InfoOption = Annotated[
    Path | None, typer.Option("--p4info", metavar="FILE", help="P4Info as text; Trainyard's own unless given.")
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="BMv2 JSON of the same program; given with --p4info.")
]
ListenOption = Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0: any that is free.")]

PortsOption = Annotated[
    bool,
    typer.Option("--port-per-switch", help="A port for every switch, counted up from that of --listen, with gNMI."),
]


def emulator(
    topology: TopologyOption,
    p4info: P4InfoOption = None,
    json: JsonOption = None,
    listen: ListenOption = "127.0.0.1:9559",
    port_per_switch: PortsOption = False,
) -> None:
    """Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT."""
    try:
        accepted = load_topology(topology)
    except ScenarioError as error:
        refuse(error.messages)
    if (p4info is None) != (json is None):
        refuse(("--p4info and --json: one pipeline in two files, expected both or neither",))
    try:
        check_host_port(listen)
    except ValueError as error:
        refuse((f"--listen: {error}, got {listen!r}",))
    p4info, json = p4info or P4INFO, json or PROGRAM
    p4info_text, json_text = _read(p4info), _read(json)
    # The emulator takes a while to import.
    from controller.cli.fabric_alone import FabricAlone

    try:
        with progress("compiling the pipeline"):
            fabric = FabricAlone(accepted.build(), p4info_text, json_text)
    except ValueError as error:
        refuse((f"{p4info} and {json}: {error}",))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(fabric.serve(listen, port_per_switch=port_per_switch))
    except (OSError, RuntimeError) as error:
        fail(f"the emulator failed: {error}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refuse((f"{path}: cannot be read: {error}",))
