"""``trainyard qos``: the configuration with which a switch that is not programmed in P4 serves levels."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from topologies.files import shown_path
from topologies.openvswitch.printed_queues import openvswitch_queues
from topologies.sonic_qos import UnnamedPortError, sonic_qos
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_topology
from trainyard.cli.options import TopologyArgument


class System(StrEnum):
    """An operating system of switches."""

    SONIC = "sonic"
    OVS = "ovs"


SystemArgument = Annotated[System, typer.Argument(metavar="SYSTEM", help="What the switch runs: sonic or ovs.")]
SwitchArgument = Annotated[
    str | None,
    typer.Argument(metavar="SWITCH", help="Its name; may be left out where one switch alone has control: dscp_only."),
]


def qos(system: SystemArgument, file: TopologyArgument, switch: SwitchArgument = None) -> None:
    """Print the configuration with which a switch serves levels: DSCP to queues, in strict priority."""
    fabric = read_topology(file).build()
    ordinary = sorted(fabric.ordinary_switches)
    if switch is None and len(ordinary) != 1:
        refuse(f"{shown_path(file)}: name a switch; control is dscp_only at {', '.join(ordinary) or 'none'}")
    name = ordinary[0] if switch is None else switch
    if name not in fabric.switch_index:
        refuse(f"{shown_path(file)}: no switch is named {name!r}; expected one of {', '.join(fabric.switches)}")
    try:
        match system:
            case System.SONIC:
                print(json.dumps(sonic_qos(fabric, name), indent=4))
            case System.OVS:
                print(openvswitch_queues(fabric, name), end="")
    except UnnamedPortError as error:
        refuse(f"{shown_path(file)}: {error}")
