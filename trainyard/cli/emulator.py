"""``trainyard emulator``: the switches of a topology, for a controller that is started by itself."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emulator.ports import CPU_PORT, DROP_PORT, require_emulated
from hostlib.addresses import check_host_port, is_local
from topologies.logs import log_to_stderr
from trainyard.cli.emulator_inputs import (
    programs_of_entries,
    read_given,
    read_or_refuse,
    read_packets,
    read_pipeline,
    read_programs,
)
from trainyard.cli.emulator_wires import WireOptions, read_interfaces
from trainyard.cli.exits import fail, refuse
from trainyard.progress import progress

if TYPE_CHECKING:
    from emulator.p4runtime.tls import ServerTls

TopologyOption = Annotated[
    Path | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        help="YAML file with a scenario, or with only its topology key; or a topology.json of p4lang's tutorials.",
    ),
]
NumPortsOption = Annotated[
    int | None, typer.Option("--ports", min=1, max=510, help="In place of a topology: one switch s1 with ports from 0.")
]
DeviceOption = Annotated[
    int, typer.Option("--device-id", min=0, max=2**63 - 1, help="With --ports: the P4Runtime device of the switch.")
]
EntriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--entries", metavar="SWITCH=FILE", help="JSON file with entries that a switch starts with. May be repeated."
    ),
]
PacketsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--packets",
        metavar="SWITCH=ADDRESS",
        help="Where programs exchange packets with a switch's ports: ipc://FILE or tcp://HOST:PORT. May be repeated.",
    ),
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
    int | None,
    typer.Option(
        "--cpu-port", min=0, max=511, help="Port of the program for packets from and to its controller. Default: 510."
    ),
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
HostsOption = Annotated[
    bool,
    typer.Option("--hosts", help="Make every host a network namespace; trainyard host runs programs there. Root only."),
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

PcapOption = Annotated[
    Path | None,
    typer.Option("--pcap", metavar="FOLDER", help="Record the packets of all ports there, as s1-eth1_in.pcap."),
]

_HIGHEST_TCP_PORT = 65535


@dataclass(frozen=True, slots=True)
class _TlsFiles:
    """The files of --tls-certificate, --tls-key and --tls-ca."""

    certificate: Path | None
    key: Path | None
    ca: Path | None

    @property
    def are_given(self) -> bool:
        return any((self.certificate, self.key, self.ca))

    def read(self) -> "ServerTls | None":
        """Return what to serve with, None without TLS; files that cannot be used are refused."""
        from emulator.p4runtime.tls import ServerTls

        if not (self.certificate and self.key and self.ca):
            return None
        tls = ServerTls(self.certificate, self.key, self.ca)
        try:
            tls.credentials()
        except ValueError as error:
            refuse(f"TLS: {error}")
        return tls

    def check(self) -> None:
        """Refuse some without the others."""
        if self.are_given and not (self.certificate and self.key and self.ca):
            refuse("--tls-certificate, --tls-key and --tls-ca: expected all three or none")


def emulator(
    topology: TopologyOption = None,
    ports: NumPortsOption = None,
    device_id: DeviceOption = 1,
    p4info: P4InfoOption = None,
    json: JsonOption = None,
    program: ProgramOption = None,
    entries: EntriesOption = None,
    packets: PacketsOption = None,
    pcap: PcapOption = None,
    listen: ListenOption = "127.0.0.1:9559",
    port_per_switch: PortsOption = False,
    cpu_port: CpuPortOption = None,
    drop_port: DropPortOption = DROP_PORT,
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    tls_ca: CaOption = None,
    insecure: InsecureOption = False,
    hosts: HostsOption = False,
    wire: WireOption = None,
    netns: NamespaceOption = None,
    mtu: MtuOption = None,
    queue_bytes: QueueOption = None,
    real_time: RealTimeOption = False,
) -> None:
    """Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT.

    With --hosts or --wire its hosts are real: frames of network interfaces pass the switches.
    """
    given = read_given(topology, ports, device_id, entries or [])
    default = read_pipeline(p4info, json, given)
    built = given.fabric
    try:
        require_emulated(built)
    except ValueError as error:
        refuse(f"--topology: {error}")
    tls_files = _TlsFiles(tls_certificate, tls_key, tls_ca)
    tls_files.check()
    _check_listen(listen, len(built.switches) if port_per_switch else 1, is_open=tls_files.are_given or insecure)
    wires = WireOptions(read_interfaces(built, wire or []), hosts, netns, mtu, queue_bytes, real_time)
    wires.check()
    sockets = read_packets(packets or [], built, insecure=insecure)
    if sockets and wires.are_wanted:
        refuse("--packets: expected without --hosts and --wire, whose hosts exchange packets with the switches")
    texts = read_or_refuse(default[0]), read_or_refuse(default[1])
    files_of = programs_of_entries(p4info, given) | read_programs(program or [], built)
    # The emulator brings LLVM and NumPy, which --help and bad input do not wait for.
    from emulator.interfaces import InterfaceError
    from emulator.standalone import ClockEndError, PipelineTexts, StandaloneEmulator

    tls = tls_files.read()
    own = {
        switch: PipelineTexts(" and ".join(map(str, files)), *map(read_or_refuse, files))
        for switch, files in files_of.items()
    }
    with wires.attached(given) as attached:
        try:
            with progress("compiling the pipeline"):
                standalone = StandaloneEmulator(
                    *(built, PipelineTexts(f"{default[0]} and {default[1]}", *texts)),
                    own=own,
                    cpu_port=next(each for each in (cpu_port, given.cpu_port, CPU_PORT) if each is not None),
                    drop_port=drop_port,
                    wires=attached,
                    entries=given.entries,
                    packets=sockets,
                )
        except InterfaceError as error:
            refuse(f"--wire: {error}")
        except ValueError as error:
            refuse(str(error))
        log_to_stderr()
        try:
            asyncio.run(standalone.serve(listen, port_per_switch=port_per_switch, tls=tls, pcap=pcap))
        except (OSError, ClockEndError) as error:
            fail(f"the emulator failed: {error}")


def _check_listen(listen: str, num_ports: int, *, is_open: bool) -> None:
    """Refuse an address that is none, or that others can reach unless it ``is_open`` to them."""
    try:
        check_host_port(listen, first_port=0)
    except ValueError as error:
        refuse(f"--listen: {error}, got {listen!r}")
    port = int(listen.rpartition(":")[2])
    last_port = port + num_ports - 1 if port else 0
    if last_port > _HIGHEST_TCP_PORT:
        refuse(f"--listen: expected ports of at most {_HIGHEST_TCP_PORT}, the last would be {last_port}")
    if not (is_open or is_local(listen)):
        refuse(f"--listen: {listen} can be reached from the network: give --tls-certificate or --insecure")
