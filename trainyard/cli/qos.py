"""``trainyard qos``: the configuration with which a switch serves levels, where no P4 program says it."""

import json
from enum import StrEnum
from typing import Annotated, assert_never

import typer

from topologies.fabric import Control, Fabric
from topologies.files import shown_path
from topologies.openvswitch.printed_queues import openvswitch_queues
from topologies.sonic_qos import UnnamedPortError, sonic_qos
from topologies.tofino.ports import TofinoPortError
from topologies.tofino.sde_qos import sde_qos
from topologies.tofino.stratum_qos import stratum_qos
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_topology
from trainyard.cli.options import TopologyArgument


class System(StrEnum):
    """What configures the queues of a switch: its operating system, or what drives its Tofino."""

    SONIC = "sonic"
    OVS = "ovs"
    STRATUM = "stratum"
    SDE = "sde"

    @property
    def usual_control(self) -> Control:
        """What the controller can do with such a switch: a Tofino runs our pipeline."""
        return Control.OURS if self in {System.STRATUM, System.SDE} else Control.DSCP_ONLY


SystemArgument = Annotated[
    System,
    typer.Argument(
        metavar="SYSTEM", help="What the switch runs: sonic or ovs; with our pipeline on a Tofino: stratum or sde."
    ),
]
SwitchArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SWITCH",
        help="Its name; may be left out where one switch alone has control: dscp_only, or ours for a Tofino.",
    ),
]


def qos(system: SystemArgument, file: TopologyArgument, switch: SwitchArgument = None) -> None:
    """Print the configuration with which a switch serves levels: queues in strict priority."""
    fabric = read_topology(file).build()
    control = system.usual_control
    candidates = [name for name in sorted(fabric.switches) if fabric.identity[name].control is control]
    if switch is None and len(candidates) != 1:
        refuse(f"{shown_path(file)}: name a switch; control is {control} at {', '.join(candidates) or 'none'}")
    name = candidates[0] if switch is None else switch
    if name not in fabric.switch_index:
        refuse(f"{shown_path(file)}: no switch is named {name!r}; expected one of {', '.join(fabric.switches)}")
    try:
        print(_configuration(system, fabric, name), end="")
    except (UnnamedPortError, TofinoPortError) as error:
        refuse(f"{shown_path(file)}: {error}")


def _configuration(system: System, fabric: Fabric, switch: str) -> str:
    match system:
        case System.SONIC:
            return json.dumps(sonic_qos(fabric, switch), indent=4) + "\n"
        case System.OVS:
            return openvswitch_queues(fabric, switch)
        case System.STRATUM:
            return stratum_qos(fabric, switch)
        case System.SDE:
            return sde_qos(fabric, switch)
        case _:
            assert_never(system)
