"""``trainyard runtime``: a server for programs over islands of devices, and what it is doing."""

import asyncio
import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from hostlib.addresses import check_server
from trainyard.cli.exits import EXIT_STATUS, fail, refuse, tell
from trainyard.cli.output import PrintableConsole, number_table

if TYPE_CHECKING:
    from runtime import Runtime

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
LookAheadOption = Annotated[
    float, typer.Option("--look-ahead", min=1e-6, metavar="S", help="How much work is granted ahead, in seconds.")
]
NameOption = Annotated[str, typer.Option("--name", help="Which client of the file this is.")]


class Order(StrEnum):
    """How computations are ordered."""

    FIFO = "fifo"
    SHARES = "shares"


runtime = typer.Typer(
    help="Run programs over islands of devices: the server, and what it does.",
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    callback=lambda: None,
)


@runtime.command(epilog=EXIT_STATUS)
def serve(
    address: AddressOption,
    clients: ClientsOption,
    islands: IslandsOption = 1,
    hosts: HostsOption = 1,
    devices: DevicesOption = 2,
    policy: Annotated[Order, typer.Option("--policy", help="Order of computations.")] = Order.FIFO,
    look_ahead_s: LookAheadOption = 0.01,
) -> None:
    """Serve islands of this machine's processes until SIGTERM or SIGINT."""
    from runtime.server.process import serve as serve_islands
    from runtime.server.settings import ClientSettings, IslandSettings, ServerSettings

    _check_address(address)
    if not clients.exists():
        _write_first_client(clients)
    try:
        known = tuple(ClientSettings(name, token, weight) for name, (weight, token) in _read_clients(clients).items())
    except ValueError as error:
        refuse(f"{clients}: {error}")
    with tempfile.TemporaryDirectory(prefix="trainyard-runtime-") as folder:
        settings = ServerSettings(
            address,
            folder,
            tuple(IslandSettings(f"island-{number}", hosts, devices) for number in range(islands)),
            known,
            secrets.token_hex(),
            policy.value,
            look_ahead_s,
        )
        try:
            asyncio.run(serve_islands(settings, lambda: tell(f"serving {islands * hosts} hosts at {address}")))
        except OSError as error:
            fail(f"{address}: cannot be served: {error.strerror}")


@runtime.command(epilog=EXIT_STATUS)
def status(address: AddressOption, clients: ClientsOption, name: NameOption = "default") -> None:
    """Show the hosts and clients of a running server."""
    with _connected(address, clients, name) as connected:
        shown = connected.status()
    PrintableConsole().print(Group(_hosts_table(shown), _clients_table(shown)))


@runtime.command(epilog=EXIT_STATUS)
def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the trace goes, as JSON for ui.perfetto.dev.")],
    address: AddressOption,
    clients: ClientsOption,
    name: NameOption = "default",
) -> None:
    """Write what the devices of a running server ran lately, for Perfetto or Chrome: a row for each device."""
    with _connected(address, clients, name) as connected:
        events = connected.trace()
    try:
        file.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    except OSError as error:
        fail(f"{file}: cannot be written: {error.strerror}")


@contextmanager
def _connected(address: str, clients: Path, name: str) -> "Iterator[Runtime]":
    """Connect as a client of the file, or end the command."""
    from runtime import Runtime, RuntimeFailure

    _check_address(address)
    known = _read_clients(clients)
    if name not in known:
        refuse(f"{clients}: there is no client {name!r}")
    try:
        with Runtime(address, known[name][1]) as connected:
            yield connected
    except OSError as error:
        fail(f"{address}: nobody answers: {error.strerror}")
    except RuntimeFailure as error:
        fail(f"{address}: {error}")


def _hosts_table(shown: Mapping[str, Any]) -> Any:
    table = number_table("Hosts", "host", "island", "process", "arrays", "bytes", "programs", "queued", left=["island"])
    for host in sorted(shown["hosts"], key=lambda host: host["host"]):
        if host.get("answers", True):
            numbers = (host["pid"], host["handles"], host["size_bytes"], host["executions"], sum(host["queued"]))
            table.add_row(str(host["host"]), host["island"], *(f"{number:,}" for number in numbers))
        else:
            table.add_row(str(host["host"]), host["island"], *["does not answer", *[""] * 4])
    return table


def _clients_table(shown: Mapping[str, Any]) -> Any:
    table = number_table("Clients", "client", "slices", "programs", "arrays", "running")
    for client in shown["clients"]:
        numbers = (client["slices"], client["programs"], client["arrays"], client["executions"])
        table.add_row(client["client"], *(f"{number:,}" for number in numbers))
    return table


def _check_address(address: str) -> None:
    try:
        check_server(address)
    except ValueError as error:
        refuse(f"--address: {error}, got {address!r}")


def _write_first_client(path: Path) -> None:
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(f"default 1 {secrets.token_hex()}\n", encoding="ascii")
    except OSError as error:
        refuse(f"{path}: cannot be written: {error.strerror}")


def _read_clients(path: Path) -> dict[str, tuple[float, str]]:
    """Return weight and token of each client, or end the command."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else 'it is no ASCII text'}")
    found: dict[str, tuple[float, str]] = {}
    for number, line in enumerate(lines, start=1):
        match line.split():
            case []:
                continue
            case [name, weight, token] if name not in found and _is_number(weight):
                found[name] = (float(weight), token)
            case _:
                refuse(f"{path}:{number}: expected a new name, a weight and a token")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
