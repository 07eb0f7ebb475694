"""``trainyard emulator``: the switches of a topology, for a controller that is started by itself."""

import asyncio
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from emulator.ports import CPU_PORT, DROP_PORT, require_emulated
from hostlib.addresses import check_host_port, is_local
from p4src import P4INFO, PROGRAM
from topologies.fabric import Fabric
from topologies.files import FileError, read_text
from topologies.logs import log_to_stderr
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import read_topology
from trainyard.progress import progress

TopologyOption = Annotated[
    Path, typer.Option("--topology", metavar="FILE", help="YAML file with a scenario, or with only its topology key.")
]
P4InfoOption = Annotated[
    Path | None, typer.Option("--p4info", metavar="FILE", help="P4Info in text form. Default: Trainyard's own program.")
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="BMv2 JSON of the same program; needs --p4info.")
]
ProgramOption = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        metavar="SWITCHES=P4INFO,JSON",
        help="Program of these switches, such as 'spine*=spine.p4info.txtpb,spine.json'. May be repeated.",
    ),
]
ListenOption = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Address to serve at; port 0: any free port.")
]
PortsOption = Annotated[
    bool,
    typer.Option(
        "--port-per-switch", help="Serve every switch at a port of its own, from the port of --listen on, with gNMI."
    ),
]
CpuPortOption = Annotated[
    int, typer.Option("--cpu-port", min=0, max=511, help="Port of the program for packets from and to its controller.")
]
DropPortOption = Annotated[
    int, typer.Option("--drop-port", min=0, max=511, help="Egress port of packets that the program drops.")
]
CertificateOption = Annotated[
    Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Certificate chain (PEM) to serve TLS with.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of --tls-certificate.")]
CaOption = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="FILE", help="Authorities (PEM) that every client's certificate must be from."),
]
InsecureOption = Annotated[
    bool, typer.Option("--insecure", help="Serve without TLS at an address that others can reach.")
]
WireOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wire", metavar="NIC=INTERFACE", help="Real interface of a host's NIC, such as h0.0=veth0. May be repeated."
    ),
]
NamespaceOption = Annotated[
    str | None, typer.Option("--netns", metavar="NAME", help="Network namespace of the interfaces: a name, or a file.")
]
MtuOption = Annotated[
    int | None, typer.Option("--mtu", min=68, max=9000, help="Longest IP packet in bytes. Default: the interfaces'.")
]
QueueOption = Annotated[
    int | None, typer.Option("--queue-bytes", min=1, help="What each queue holds, with --wire. Default: 3,000,000.")
]
RealTimeOption = Annotated[
    bool, typer.Option("--real-time", help="With --wire: real-time priority for this process. Leaves one core free.")
]

_HIGHEST_TCP_PORT = 65535
_NAMED_NAMESPACES = Path("/var/run/netns")


def emulator(
    topology: TopologyOption,
    p4info: P4InfoOption = None,
    json: JsonOption = None,
    program: ProgramOption = None,
    listen: ListenOption = "127.0.0.1:9559",
    port_per_switch: PortsOption = False,
    cpu_port: CpuPortOption = CPU_PORT,
    drop_port: DropPortOption = DROP_PORT,
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    tls_ca: CaOption = None,
    insecure: InsecureOption = False,
    wire: WireOption = None,
    netns: NamespaceOption = None,
    mtu: MtuOption = None,
    queue_bytes: QueueOption = None,
    real_time: RealTimeOption = False,
) -> None:
    """Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT.

    With --wire its hosts are real: frames of network interfaces pass the switches.
    """
    accepted = read_topology(topology)
    if (p4info is None) != (json is None):
        refuse("--p4info and --json: expected both or neither, as they are two files of one pipeline")
    try:
        check_host_port(listen, first_port=0)
    except ValueError as error:
        refuse(f"--listen: {error}, got {listen!r}")
    built = accepted.build()
    try:
        require_emulated(built)
    except ValueError as error:
        refuse(f"--topology: {error}")
    port = listen.rpartition(":")[2]
    last_port = int(port) + (len(built.switches) - 1 if port_per_switch and int(port) else 0)
    if last_port > _HIGHEST_TCP_PORT:
        refuse(f"--listen: expected ports of at most {_HIGHEST_TCP_PORT}, the last would be {last_port}")
    tls_files = (tls_certificate, tls_key, tls_ca)
    if any(tls_files) and not all(tls_files):
        refuse("--tls-certificate, --tls-key and --tls-ca: expected all three or none")
    if not (any(tls_files) or insecure or is_local(listen)):
        refuse(f"--listen: {listen} can be reached from the network: give --tls-certificate or --insecure")
    interfaces = _interfaces(built, wire or [])
    if not interfaces and (netns or mtu or queue_bytes or real_time):
        refuse("--netns, --mtu, --queue-bytes and --real-time: expected with --wire only")
    p4info, json = p4info or P4INFO, json or PROGRAM
    p4info_text, json_text = _read(p4info), _read(json)
    files_of = _own_programs(built, program or [])
    # The emulator brings Numba and gRPC, which --help and bad input do not wait for.
    from emulator.interfaces import InterfaceError
    from emulator.p4runtime.tls import ServerTls
    from emulator.standalone import ClockEndError, PipelineTexts, StandaloneEmulator, Wires
    from emulator.wired_fabric import QUEUE_BYTES

    tls = None
    if tls_certificate and tls_key and tls_ca:
        tls = ServerTls(tls_certificate, tls_key, tls_ca)
        try:
            tls.credentials()
        except ValueError as error:
            refuse(f"TLS: {error}")

    namespace = None if netns is None else Path(netns) if "/" in netns else _NAMED_NAMESPACES / netns
    wires = Wires(interfaces, namespace, mtu, queue_bytes or QUEUE_BYTES, real_time) if interfaces else None
    own = {
        switch: PipelineTexts(" and ".join(map(str, files)), *map(_read, files)) for switch, files in files_of.items()
    }
    try:
        with progress("compiling the pipeline"):
            standalone = StandaloneEmulator(
                *(built, PipelineTexts(f"{p4info} and {json}", p4info_text, json_text)),
                own=own,
                cpu_port=cpu_port,
                drop_port=drop_port,
                wires=wires,
            )
    except InterfaceError as error:
        refuse(f"--wire: {error}")
    except ValueError as error:
        refuse(str(error))
    log_to_stderr()
    try:
        asyncio.run(standalone.serve(listen, port_per_switch=port_per_switch, tls=tls))
    except (OSError, ClockEndError) as error:
        fail(f"the emulator failed: {error}")


def _own_programs(fabric: Fabric, programs: Sequence[str]) -> dict[str, tuple[Path, Path]]:
    """Return the files of P4Info and JSON by switch, for switches that have a program of their own."""
    found: dict[str, tuple[Path, Path]] = {}
    for program in programs:
        switches, _, files = program.partition("=")
        p4info, _, json = files.partition(",")
        if not (switches and p4info and json):
            refuse(f"--program: expected SWITCHES=P4INFO,JSON, got {program!r}")
        named = fnmatch.filter(fabric.switches, switches)
        if not named:
            refuse(f"--program: expected one or more of the switches {', '.join(fabric.switches)}, got {switches!r}")
        for switch in named:
            if switch in found:
                refuse(f"--program: switch {switch} has two programs")
            found[switch] = Path(p4info), Path(json)
    return found


def _interfaces(fabric: Fabric, wires: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return the interfaces by host and number of its NIC."""
    found: dict[tuple[str, int], str] = {}
    for wire in wires:
        nic, _, interface = wire.partition("=")
        host, _, number = nic.rpartition(".")
        if not (interface and number.isdecimal() and int(number) < len(fabric.nics.get(host, ()))):
            hosts = ", ".join(f"{nic.host}.{nic.index}" for nics in fabric.nics.values() for nic in nics)
            refuse(f"--wire: expected NIC=INTERFACE with one of the NICs {hosts}, got {wire!r}")
        if (host, int(number)) in found:
            refuse(f"--wire: {nic} has two interfaces")
        if interface in found.values():
            refuse(f"--wire: {interface} is the interface of two NICs")
        found[host, int(number)] = interface
    return found


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except FileError as error:
        refuse(str(error))
