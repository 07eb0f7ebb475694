"""``trainyard runtime``: a server for programs over islands of devices, and what it is doing."""

import asyncio
import itertools
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from hostlib.addresses import check_server
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import EXIT_STATUS, fail, refuse, tell
from trainyard.cli.lazy_group import ShortenedCommand, command_group
from trainyard.cli.output import PrintableConsole
from trainyard.cli.report_files import write_trace
from trainyard.cli.runtime_clients import read_clients, write_first_client
from trainyard.cli.runtime_network import read_network_hosts
from trainyard.cli.runtime_pictures import draw, picture_format
from trainyard.cli.runtime_tables import busy_tables, clients_table, hosts_table, network_table, published_table

if TYPE_CHECKING:
    from runtime import Runtime
    from runtime.substrates.local import LocalSubstrate

AddressOption = Annotated[
    str, typer.Option("--address", metavar="ADDRESS", help="Where the server listens: unix:/PATH or HOST:PORT.")
]
ClientsOption = Annotated[
    Path,
    typer.Option(
        "--clients", metavar="FILE", help="Clients, one a line: name, weight and token. Made with one where none is."
    ),
]
IslandsOption = Annotated[int, typer.Option("--islands", min=1, help="Number of islands: island-0, island-1, …")]
HostsOption = Annotated[int, typer.Option("--hosts", min=1, help="Hosts of each island; each is a process.")]
DevicesOption = Annotated[int, typer.Option("--devices", min=1, help="Devices of each host.")]
MemoryOption = Annotated[
    int, typer.Option("--device-memory", min=0, metavar="BYTES", help="What arrays may take on each device.")
]
HostMemoryOption = Annotated[
    int, typer.Option("--host-memory", min=0, metavar="BYTES", help="What arrays may take that devices have spilled.")
]
KindOption = Annotated[str, typer.Option("--kind", help="What the devices are called in constraints of slices.")]
MeshOption = Annotated[
    str | None,
    typer.Option("--mesh", metavar="AxB", help="Shape of the interconnect of each island, as 4x2; none by default."),
]
LookAheadOption = Annotated[
    float, typer.Option("--look-ahead", min=1e-6, metavar="S", help="How much work is granted ahead, in seconds.")
]
NetworkHostsOption = Annotated[
    Path | None,
    typer.Option(
        "--network-hosts",
        metavar="FILE",
        help="Hosts on hosts of a network, one a line: number, name, address, and what a command there begins with.",
    ),
]
ControllerOption = Annotated[
    str | None,
    typer.Option("--controller", metavar="ADDRESS", help="Controller of that network: HOST:PORT or unix:/PATH."),
]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", metavar="CLUSTER", help="Hosts are actors of this Ray cluster: HOST:PORT or auto."),
]
StrategyOption = Annotated[
    str, typer.Option("--strategy", help="Where Ray places the hosts of an island: PACK, SPREAD, STRICT_PACK, …")
]
CpusOption = Annotated[
    float, typer.Option("--cpus-per-device", min=1e-4, help="What a host takes of Ray's CPU for each device.")
]
ClientArgument = Annotated[
    str, typer.Argument(metavar="CLIENT", help="A name of the file, or one of its connections, as `status` shows it.")
]
PictureOption = Annotated[
    Path | None, typer.Option("--picture", metavar="FILE", help="Also draw the end of it: FILE.svg, .png or .pdf.")
]
LastOption = Annotated[
    float, typer.Option("--last", min=1e-3, metavar="S", help="How many seconds the picture shows, up to the last one.")
]
NameOption = Annotated[str, typer.Option("--name", help="Which client of the file this is.")]


class Order(StrEnum):
    """How computations are ordered."""

    FIFO = "fifo"
    SHARES = "shares"
    EARLIEST_NEED = "earliest-need"


runtime = command_group("Run programs over islands of devices: the server, and what it does.")


@runtime.command(epilog=EXIT_STATUS)
def serve(
    address: AddressOption,
    clients: ClientsOption,
    islands: IslandsOption = 1,
    hosts: HostsOption = 1,
    devices: DevicesOption = 2,
    policy: Annotated[Order, typer.Option("--policy", help="Order of computations.")] = Order.FIFO,
    mesh: MeshOption = None,
    kind: KindOption = "core",
    device_memory_bytes: MemoryOption = 1 << 30,
    host_memory_bytes: HostMemoryOption = 4 << 30,
    look_ahead_s: LookAheadOption = 0.02,
    network_hosts: NetworkHostsOption = None,
    controller: ControllerOption = None,
    ray: RayOption = None,
    strategy: StrategyOption = "PACK",
    cpus_per_device: CpusOption = 1.0,
) -> None:
    """Serve islands of this machine's processes, or of a Ray cluster, until SIGTERM or SIGINT."""
    from runtime.server.process import serve as serve_islands
    from runtime.server.settings import IslandSettings, ServerSettings, controllers_of
    from runtime.substrates.interface import SubstrateError
    from runtime.substrates.ray_cluster import RaySettings

    _check_address(address)
    if not clients.exists():
        write_first_client(clients)
    known = tuple(read_clients(clients).values())
    on_network = {} if network_hosts is None else read_network_hosts(network_hosts)
    of_each = (hosts, devices, _sides(mesh), device_memory_bytes, host_memory_bytes, kind)
    with tempfile.TemporaryDirectory(prefix="trainyard-runtime-") as folder:
        try:
            settings = ServerSettings(
                address,
                folder,
                tuple(IslandSettings(f"island-{number}", *of_each) for number in range(islands)),
                known,
                secrets.token_hex(),
                policy.value,
                look_ahead_s,
                network_hosts=on_network,
                controllers=() if controller is None else controllers_of(controller),
                ray=None if ray is None else RaySettings(ray, strategy, cpus_per_device),
            )
        except ValueError as error:
            refuse(str(error))
        try:
            asyncio.run(serve_islands(settings, lambda at: tell(f"serving {islands * hosts} hosts at {at}")))
        except ValueError as error:
            refuse(str(error))
        except OSError as error:
            fail(f"{address}: cannot be served: {error.strerror}")
        except SubstrateError as error:
            fail(str(error))


@runtime.command(epilog=EXIT_STATUS, cls=ShortenedCommand)
def status(
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the hosts and clients of a running server; CSV has the hosts."""
    with _connected(address, clients, name) as connected:
        shown = connected.status()
    Writer(output).write(Answer(shown, shown["hosts"], lambda: _status_tables(shown)))


def _status_tables(shown: Mapping[str, Any]) -> Group:
    tables = [hosts_table(shown), clients_table(shown)]
    if shown["published"]:
        tables.append(published_table(shown))
    if jobs := shown.get("network", {}).get("jobs"):
        tables.append(network_table(jobs))
    return Group(*tables)


@runtime.command(epilog=EXIT_STATUS)
def top(
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
    every_s: Annotated[float, typer.Option("--every", min=0.1, metavar="S", help="How often it looks.")] = 1.0,
    looks: Annotated[int, typer.Option("--looks", min=0, help="After how many looks it ends; 0: at Ctrl-C.")] = 0,
) -> None:
    """Show again and again how busy devices are, and which client uses them."""
    console = PrintableConsole()
    with _connected(address, clients, name) as connected:
        before, before_s = connected.status(), time.monotonic()
        for _ in range(looks) if looks else itertools.count():
            try:
                time.sleep(every_s)
            except KeyboardInterrupt:
                return
            now, now_s = connected.status(), time.monotonic()
            console.print(busy_tables(before, now, now_s - before_s))
            before, before_s = now, now_s


@runtime.command(epilog=EXIT_STATUS)
def join(
    address: AddressOption,
    clients: ClientsOption,
    island: Annotated[str, typer.Option("--island", help="The island that it joins.")],
    devices: DevicesOption = 2,
    device_memory_bytes: MemoryOption = 1 << 30,
    host_memory_bytes: HostMemoryOption = 4 << 30,
    kind: KindOption = "core",
    name: NameOption = "default",
) -> None:
    """Start a host on this machine that joins an island of a running server. At SIGTERM or SIGINT it leaves.

    Where it cannot leave it stays, and ends at the next signal with all that it holds.
    """
    from runtime.substrates.interface import SubstrateError
    from runtime.substrates.local import LocalSubstrate

    substrate = LocalSubstrate()
    memories = {"device_memory_bytes": device_memory_bytes, "host_memory_bytes": host_memory_bytes}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with closing(substrate), _connected(address, clients, name) as connected:
        try:
            host = connected.add_host(island, devices, kind=kind, substrate=substrate, **memories)
        except SubstrateError as error:
            fail(str(error))
        tell(f"host {host} has joined {island}")
        try:
            _stay(connected, substrate, host)
        except KeyboardInterrupt:
            fail(f"host {host} has ended")
        if not connected.is_open:
            fail(f"{address}: the server is gone")
    tell(f"host {host} has left")


def _stay(connected: "Runtime", substrate: "LocalSubstrate", host: int) -> None:
    """Wait until a host has left, at the first signal at the latest. Raises KeyboardInterrupt at the second."""
    from runtime import RefusedError

    try:
        substrate.wait(host)
    except KeyboardInterrupt:
        try:
            connected.remove_host(host)
        except RefusedError as error:
            tell(f"{error}; it stays")
        substrate.wait(host)


@runtime.command(epilog=EXIT_STATUS)
def leave(
    host: Annotated[int, typer.Argument(metavar="HOST", help="The number of the host, as `status` shows it.")],
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
) -> None:
    """Let a host leave: what lies there moves to others, and what it runs comes to its end before."""
    with _connected(address, clients, name) as connected:
        moved = connected.remove_host(host)
    tell(f"host {host} has left; arrays that moved: {moved}")


@runtime.command(epilog=EXIT_STATUS)
def suspend(
    client: ClientArgument, address: AddressOption, clients: ClientsOption, name: NameOption = "default"
) -> None:
    """Take the devices of a client away; its requests wait until it is resumed."""
    with _connected(address, clients, name) as connected:
        connected.suspend(client)


@runtime.command(epilog=EXIT_STATUS)
def resume(
    client: ClientArgument, address: AddressOption, clients: ClientsOption, name: NameOption = "default"
) -> None:
    """Give a suspended client devices again, perhaps others."""
    with _connected(address, clients, name) as connected:
        connected.resume(client)


@runtime.command(epilog=EXIT_STATUS)
def migrate(
    client: ClientArgument,
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
    island: Annotated[str | None, typer.Option("--island", help="Where to; static balance says it by default.")] = None,
) -> None:
    """Move a client to other devices, which it does not notice."""
    with _connected(address, clients, name) as connected:
        connected.migrate(client, island)


@runtime.command(epilog=EXIT_STATUS)
def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the trace goes, as JSON for ui.perfetto.dev.")],
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
    picture: PictureOption = None,
    last_s: LastOption = 0.5,
) -> None:
    """Write what the devices of a running server ran lately, for Perfetto or Chrome: a row for each device.

    Each flow between islands on a network has a row too; then it says how many transfers were announced in time.
    """
    from runtime.traces import announced_before_producer_end

    file_format = None if picture is None else picture_format(picture)
    with _connected(address, clients, name) as connected:
        events = connected.trace()
    write_trace(events, file)
    share = announced_before_producer_end(events)
    if share is not None:
        tell(f"transfers that were announced before what they sent had been made: {share:.1%}")
    if picture is not None and file_format is not None:
        draw(events, picture, file_format, last_s)


@contextmanager
def _connected(address: str, clients: Path, name: str) -> "Iterator[Runtime]":
    """Connect as a client of the file, or end the command."""
    from runtime import Runtime, RuntimeFailure

    _check_address(address)
    known = read_clients(clients)
    if name not in known:
        refuse(f"{clients}: there is no client {name!r}")
    try:
        with Runtime(address, known[name].token) as connected:
            yield connected
    except OSError as error:
        fail(f"{address}: nobody answers: {error.strerror}")
    except RuntimeFailure as error:
        fail(f"{address}: {error}")


def _sides(mesh: str | None) -> tuple[int, ...] | None:
    if mesh is None:
        return None
    try:
        return tuple(map(int, mesh.split("x")))
    except ValueError:
        refuse(f"--mesh: expected whole numbers as 4x2, got {mesh!r}")


def _check_address(address: str) -> None:
    try:
        check_server(address)
    except ValueError as error:
        refuse(f"--address: {error}, got {address!r}")
