"""``trainyard port``: a port of a switch, which is enabled or disabled by gNMI."""

from enum import StrEnum
from typing import Annotated

import typer
from finsy.proto import gnmi_grpc

from emulator.p4runtime.port_requests import port_request
from trainyard.cli.connecting import CaOption, CertificateOption, KeyOption
from trainyard.cli.exits import refuse
from trainyard.cli.switch_channel import check_switch_address, switch_channel

AddressArgument = Annotated[str, typer.Argument(metavar="HOST:PORT", help="gNMI address of the switch.")]
SwitchArgument = Annotated[str, typer.Argument(metavar="SWITCH", help="Name of the switch.")]
PortArgument = Annotated[str, typer.Argument(metavar="PORT", help="Number of the port, or its name.")]

_LARGEST_NUMBER = 2**32 - 1
_WAIT_S = 10.0


class State(StrEnum):
    """What a port may be."""

    UP = "up"
    DOWN = "down"


def port(
    address: AddressArgument,
    switch: SwitchArgument,
    port: PortArgument,
    state: Annotated[State, typer.Argument(metavar="up|down", show_choices=False)],
    ca: CaOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
) -> None:
    """Enable a port of a switch, or disable it: its cable is down then."""
    check_switch_address(address)
    request = port_request(switch, _number_or_name(port), is_enabled=state is State.UP)
    with switch_channel(address, ca, certificate, key, f"port {port} of {switch} cannot be set") as channel:
        gnmi_grpc.gNMIStub(channel).Set(request, timeout=_WAIT_S)


def _number_or_name(text: str) -> int | str:
    if not (text.isascii() and text.isdecimal()):
        return text
    if len(text) > len(str(_LARGEST_NUMBER)) or not 1 <= int(text) <= _LARGEST_NUMBER:
        refuse(f"PORT: expected a number from 1 to {_LARGEST_NUMBER}, or a name, got {text!r}")
    return int(text)
