"""``trainyard trace-packet``: what happens to one packet in the switches of a running emulator."""

from typing import Annotated

import grpc
import typer

from hostlib.addresses import check_host_port
from hostlib.credentials import Credentials
from topologies.printable import printable
from trainyard.cli.connecting import CaOption, CertificateOption, KeyOption, tls_hint
from trainyard.cli.exits import fail, refuse

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
    try:
        check_host_port(address)
    except ValueError as error:
        refuse(f"{error}, got {address!r}")
    try:
        known = bytes.fromhex(octets)
    except ValueError:
        refuse(f"BYTES: expected pairs of hexadecimal digits, got {octets!r}")
    # The emulator brings Numba, which bad input does not wait for.
    from emulator.p4runtime.packet_traces import PATH, TraceRequest

    request = TraceRequest(switch=switch, port=port, octets=known.hex(), length=length, form="json" if json else "text")
    try:
        credentials = Credentials.from_environment(ca=ca, certificate=certificate, key=key)
        connection = credentials.channel(address)
    except ValueError as error:
        refuse(str(error))
    with connection as channel:
        try:
            call = channel.unary_unary(PATH, request_serializer=bytes, response_deserializer=bytes)
            answer = call(request.model_dump_json().encode(), timeout=_WAIT_S)
        except grpc.RpcError as error:
            reason = error.details() if isinstance(error, grpc.Call) else error
            fail(f"{address}: the packet cannot be traced: {reason}{tls_hint(str(reason), credentials)}")
    print(answer.decode() if json else "\n".join(map(printable, answer.decode().splitlines())))
