"""``trainyard import``: a fabric file from a table of cables, or from containerlab's topology of a lab."""

from pathlib import Path
from typing import Annotated

import typer

from topologies.expanding import fabric_file
from topologies.files import shown_path
from topologies.imports import netbox
from topologies.imports.containerlab import HOST_KINDS, add_lab
from topologies.imports.draft import Defaults, Draft, ImportFailedError
from topologies.imports.port_names import PortNames
from trainyard.cli.exits import EXIT_STATUS, fail, refuse
from trainyard.cli.lazy_group import command_group

CablesArgument = Annotated[
    Path, typer.Argument(metavar="CABLES", help="CSV with side_a_device, side_a_name, side_b_device and side_b_name.")
]
LabArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A topology file of containerlab (YAML).")]
DevicesOption = Annotated[
    Path | None, typer.Option("--devices", metavar="FILE", help="CSV with the name and role of each device.")
]
SwitchRoleOption = Annotated[
    list[str] | None, typer.Option("--switch-role", metavar="ROLE", help="A role that switches have. May be repeated.")
]
HostRoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host-role",
        metavar="ROLE",
        help="A role that hosts have; devices of other roles stay out. Default: all that are no switches are hosts. "
        "May be repeated.",
    ),
]
SwitchesOption = Annotated[
    list[str] | None,
    typer.Option("--switches", metavar="PATTERN", help="Names that switches have, such as 'leaf*'. May be repeated."),
]
HostKindOption = Annotated[
    list[str] | None,
    typer.Option("--host-kind", metavar="KIND", help="A kind of node that is a host. Default: linux. May be repeated."),
]
AddressesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--addresses",
        metavar="FILE",
        help="CSV with device and interface, and with address, mac_address or both. May be repeated.",
    ),
]
InterfacesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--interfaces",
        metavar="FILE",
        help="CSV with device and name, and with number, speed (kbit/s), gbps or mac_address. May be repeated.",
    ),
]
PortNamesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--port-names",
        metavar="RULE",
        help="Names of ports that tell their numbers, such as 'Ethernet1/{number}'. May be repeated.",
    ),
]
GbpsOption = Annotated[
    float | None, typer.Option("--gbps", metavar="GBPS", help="Speed of cables of which nothing else tells it.")
]
DelayOption = Annotated[
    float | None, typer.Option("--delay-us", metavar="US", help="One-way delay of cables, in microseconds.")
]
GpusOption = Annotated[int | None, typer.Option("--gpus-per-host", metavar="N", help="GPUs of each host.")]
P4RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "--p4runtime", metavar="ADDRESS", help="Where switches are controlled, such as '{switch}.example:9559'."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", dir_okay=False, help="Write the fabric file there, not to stdout."),
]

imports = command_group("Write a fabric file from a table of cables, or from containerlab's topology of a lab.")


@imports.command(epilog=EXIT_STATUS)
def cables(
    cables: CablesArgument,
    devices: DevicesOption = None,
    switch_role: SwitchRoleOption = None,
    host_role: HostRoleOption = None,
    switches: SwitchesOption = None,
    addresses: AddressesOption = None,
    interfaces: InterfacesOption = None,
    port_names: PortNamesOption = None,
    gbps: GbpsOption = None,
    delay_us: DelayOption = None,
    gpus_per_host: GpusOption = None,
    p4runtime: P4RuntimeOption = None,
    out: OutOption = None,
) -> None:
    """Write a fabric file from CSV in the shape of NetBox's imports; where something is wrong, nothing is written."""
    if not switches and not (switch_role and devices):
        refuse("which devices are switches is not said: add --switches, or --devices and --switch-role")
    if host_role and devices is None:
        refuse("--host-role: needs --devices, which has the roles")
    draft = Draft()
    roles = netbox.Roles(frozenset(switch_role or ()), frozenset(host_role or ()), tuple(switches or ()))
    netbox.add_cabling(draft, cables, devices, roles)
    _finish(draft, addresses, interfaces, _defaults(gbps, delay_us, gpus_per_host, port_names, p4runtime), out)


@imports.command(epilog=EXIT_STATUS)
def containerlab(
    file: LabArgument,
    host_kind: HostKindOption = None,
    addresses: AddressesOption = None,
    interfaces: InterfacesOption = None,
    port_names: PortNamesOption = None,
    gbps: GbpsOption = None,
    delay_us: DelayOption = None,
    gpus_per_host: GpusOption = None,
    p4runtime: P4RuntimeOption = None,
    out: OutOption = None,
) -> None:
    """Write a fabric file from a topology file of containerlab; where something is wrong, nothing is written."""
    draft = Draft()
    add_lab(draft, file, host_kind or HOST_KINDS)
    _finish(draft, addresses, interfaces, _defaults(gbps, delay_us, gpus_per_host, port_names, p4runtime), out)


def _defaults(
    gbps: float | None,
    delay_us: float | None,
    gpus_per_host: int | None,
    port_names: list[str] | None,
    p4runtime: str | None,
) -> Defaults:
    try:
        rules = PortNames.of(port_names or ())
    except ValueError as error:
        refuse(f"--port-names: {error}")
    return Defaults(gbps, delay_us, gpus_per_host, rules, p4runtime)


def _finish(
    draft: Draft, addresses: list[Path] | None, interfaces: list[Path] | None, defaults: Defaults, out: Path | None
) -> None:
    netbox.add_addresses(draft, addresses or ())
    netbox.add_interfaces(draft, interfaces or ())
    try:
        text = fabric_file(draft.specification(defaults))
    except ImportFailedError as error:
        refuse(*error.messages)
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{shown_path(out)}: cannot be written: {error.strerror}")
