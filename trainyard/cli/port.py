"""``trainyard port``: a port of a switch, which is enabled or disabled by gNMI."""

from enum import StrEnum
from typing import Annotated

import grpc
import typer
from finsy.proto import gnmi_grpc

from emulator.p4runtime.port_requests import port_request
from hostlib.addresses import check_host_port
from trainyard.cli.exits import fail, refuse

AddressArgument = Annotated[str, typer.Argument(metavar="HOST:PORT", help="gNMI address of the switch.")]
SwitchArgument = Annotated[str, typer.Argument(metavar="SWITCH", help="Name of the switch.")]
PortArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Number of the port.")]

_WAIT_S = 10.0


class State(StrEnum):
    """What a port may be."""

    UP = "up"
    DOWN = "down"


def port(
    address: AddressArgument,
    switch: SwitchArgument,
    number: PortArgument,
    state: Annotated[State, typer.Argument(metavar="up|down", show_choices=False)],
) -> None:
    """Enable a port of a switch, or disable it: its cable is down then."""
    try:
        check_host_port(address)
    except ValueError as error:
        refuse(f"{error}, got {address!r}")
    request = port_request(switch, number, is_enabled=state is State.UP)
    with grpc.insecure_channel(address) as channel:
        try:
            gnmi_grpc.gNMIStub(channel).Set(request, timeout=_WAIT_S)
        except grpc.RpcError as error:
            reason = error.details() if isinstance(error, grpc.Call) else error
            fail(f"{address}: port {number} of {switch} cannot be set: {reason}")
