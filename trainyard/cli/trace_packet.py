"""``trainyard trace-packet``: what happens to one packet in the switches of a running emulator."""

from typing import Annotated

import typer

from topologies.printable import printable
from trainyard.cli.connecting import CaOption, CertificateOption, KeyOption
from trainyard.cli.exits import refuse
from trainyard.cli.switch_channel import check_switch_address, switch_channel

AddressArgument = Annotated[str, typer.Argument(metavar="HOST:PORT", help="P4Runtime address of the emulator.")]
SwitchArgument = Annotated[str, typer.Argument(metavar="SWITCH", help="Name of the switch at which it arrives.")]
PortArgument = Annotated[int, typer.Argument(metavar="PORT", min=0, max=511, help="Number of the port.")]
OctetsArgument = Annotated[
    str, typer.Argument(metavar="BYTES", help="The packet's first bytes, as hexadecimal digits.")
]
LengthOption = Annotated[
    int | None,
    typer.Option("--length", min=0, max=65_535, help="Bytes of the packet; zeros follow those that are given."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_WAIT_S = 120.0


def trace_packet(
    address: AddressArgument,
    switch: SwitchArgument,
    port: PortArgument,
    octets: OctetsArgument,
    length: LengthOption = None,
    json: JsonOption = False,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
) -> None:
    """Show what would happen to a packet in the switches of a running emulator, step by step; nothing changes."""
    check_switch_address(address)
    try:
        known = bytes.fromhex(octets)
    except ValueError:
        refuse(f"BYTES: expected pairs of hexadecimal digits, got {octets!r}")
    # The emulator brings LLVM and NumPy, which bad input does not wait for.
    from emulator.p4runtime.packet_traces import PATH, TraceRequest

    request = TraceRequest(switch=switch, port=port, octets=known.hex(), length=length, form="json" if json else "text")
    with switch_channel(address, ca, certificate, key, "the packet cannot be traced") as channel:
        call = channel.unary_unary(PATH, request_serializer=bytes, response_deserializer=bytes)
        answer = call(request.model_dump_json().encode(), timeout=_WAIT_S)
    print(answer.decode() if json else "\n".join(map(printable, answer.decode().splitlines())))
