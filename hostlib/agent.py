"""The host agent as a process: ``trainyard agent``, or the equivalent ``python -m hostlib.agent``.

Exit status: 0 after SIGTERM or SIGINT, 1 if it failed, 2 if its arguments are wrong.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from hostlib import checks
from hostlib.addresses import check_address, listed_addresses
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.files import read_file
from hostlib.service_manager import ServiceManager
from hostlib.telemetry.host_agent import AgentStatus, HostAgent
from hostlib.telemetry.interfaces import Interface, InterfaceError, find_interface
from hostlib.telemetry.probe_agent import ProbeAgent
from hostlib.telemetry.probe_ingress_filter import ProbeIngressFilter
from hostlib.telemetry.sockets import ProbeSockets
from hostlib.wire.session_window import SESSION_SILENCE_S

_LOG = logging.getLogger(__name__)

_CONTROLLER = "127.0.0.1:4790"

_EPILOG = "Runs until SIGTERM or SIGINT and prints its status on SIGUSR1. Needs CAP_NET_RAW; see --leave-probes."

_START_S = 1.2 * SESSION_SILENCE_S

_CREDENTIALS = {
    "ca": "certificates of the CAs that controllers are trusted by",
    "certificate": "the agent's own certificate",
    "key": "its key",
    "token-file": "file with the bearer token that tells who the agent is",
}
"""Options, all of them files, with what they contain."""

_FILTER_NEEDS = "the filter needs Linux 6.6, CAP_NET_ADMIN and CAP_BPF"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent until it ends; return the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    try:
        interfaces = [find_interface(asked) for asked in options.nic]
        _check_different(interfaces)
        owner_token = _owner_token(options.owner_token_file)
        controllers = options.controller or _default_controllers()
        credentials = _credentials(options, controllers)
    except InterfaceError as error:
        print(f"--nic {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"--owner-token-file {options.owner_token_file}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(options, interfaces, controllers, owner_token, credentials))
    except OSError as error:
        print(f"the agent failed: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "trainyard agent",
        description="Send probes from a host and report to the controller what they measured.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--host", required=True, metavar="NAME", help="the host's name in the controller's topology")
    add(
        "--nic",
        required=True,
        action="append",
        metavar="NAME[=ADDRESS][@GBPS]",
        help="an interface to probe from; repeatable; address and rate default to the system's",
    )
    add(
        "--controller",
        action="append",
        type=_address,
        metavar="ADDRESS",
        help="HOST:PORT or unix:/PATH of the controller; repeat it for several controllers; default:"
        f" TRAINYARD_CONTROLLER, with commas between several, else {_CONTROLLER}",
    )
    add(
        "--owner-token-file",
        type=Path,
        metavar="FILE",
        help="file with the token that identifies this host's agent, created where missing; without it, a restarted"
        " agent waits until the lease of the previous one ends",
    )
    for name, what in _CREDENTIALS.items():
        add(f"--{name}", type=Path, metavar="FILE", help=f"{what}; default: TRAINYARD_{name.upper().replace('-', '_')}")
    add("--leave-probes", action="store_true", help="let the host's own protocols see probes, and answer them")
    add("--every-s", type=_seconds, default=60.0, metavar="SECONDS", help="interval between status lines")
    add("--json", action="store_true", help="print the status as JSON, one object a line")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return seconds


def _address(text: str) -> str:
    try:
        return check_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("address: ")) from None


def _check_different(interfaces: Sequence[Interface]) -> None:
    addresses = [interface.address for interface in interfaces]
    for interface in interfaces:
        if addresses.count(interface.address) > 1:
            raise InterfaceError(f"{interface.name}: address {interface.address} is repeated")


def _owner_token(file: Path | None) -> str | None:
    """Read the token in a file that only the owner may read; create it where missing.

    Raises OSError where that is not possible, and ValueError, naming the file, for what holds no token.
    """
    if file is None:
        return None
    with contextlib.suppress(FileExistsError):
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(secrets.token_hex(16))
    return checks.name(str(file), read_file(file).decode(errors="replace").strip())


def _default_controllers() -> Sequence[str]:
    """Return the controllers of the environment, else the one on this machine. Raises ValueError."""
    try:
        return listed_addresses(os.environ.get("TRAINYARD_CONTROLLER", "")) or (_CONTROLLER,)
    except ValueError as error:
        raise ValueError(f"TRAINYARD_CONTROLLER: {error}") from None


def _credentials(options: argparse.Namespace, controllers: Iterable[str]) -> Credentials:
    """Return the credentials of the options, and of the environment for those not given. Raises ValueError."""
    credentials = Credentials.from_environment(
        ca=options.ca, certificate=options.certificate, key=options.key, token_file=options.token_file
    )
    for address in controllers:
        credentials.check(address)
    return credentials


async def _serve(
    options: argparse.Namespace,
    interfaces: Sequence[Interface],
    controllers: Sequence[str],
    owner_token: str | None,
    credentials: Credentials,
) -> None:
    """Probe until a signal ends the process. Raises OSError if the host's NICs cannot send or receive probes."""
    stop, asked = asyncio.Event(), asyncio.Event()
    manager = ServiceManager.from_environment()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, asked.set)
    async with contextlib.AsyncExitStack() as stack:
        sockets = [stack.enter_context(contextlib.closing(ProbeSockets(interface))) for interface in interfaces]
        if not options.leave_probes:
            for interface in interfaces:
                _add_ingress_filter(interface, stack)
        connection = await stack.enter_async_context(Connection(controllers, owner_token, credentials=credentials))
        # The probes of an agent before this one still count as its own.
        await asyncio.sleep(_START_S)
        rates_bps = {interface.address: interface.rate_bps for interface in interfaces}
        agent = HostAgent(ProbeAgent(options.host, rates_bps, secrets.randbits(32)), sockets, connection)
        nics = ", ".join(f"{nic.name} ({nic.address}, {nic.rate_bps / 1e9:g} Gbit/s)" for nic in interfaces)
        print(f"probing for {options.host} by {nics}", file=sys.stderr, flush=True)
        manager.ready(f"probing for {options.host} by {nics}")
        parts = (agent.run(), _print_status(agent, asked, options, manager), manager.keep_alive(), stop.wait())
        work = [asyncio.create_task(part) for part in parts]
        done, pending = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        manager.stopping()
        for part in pending:
            part.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        _print(agent.status(), as_json=options.json)
        for part in done:
            part.result()


def _add_ingress_filter(interface: Interface, stack: contextlib.AsyncExitStack) -> None:
    try:
        stack.enter_context(contextlib.closing(ProbeIngressFilter(interface.name, interface.address)))
    except OSError as error:
        _LOG.warning(
            "%s: the host's own protocols see probes and may answer them: %s: %s", interface.name, _FILTER_NEEDS, error
        )


async def _print_status(
    agent: HostAgent, asked: asyncio.Event, options: argparse.Namespace, manager: ServiceManager
) -> None:
    """Print the agent's status, and tell the service manager, at intervals and on SIGUSR1."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(options.every_s):
                await asked.wait()
        asked.clear()
        status = agent.status()
        manager.status(_line(status))
        _print(status, as_json=options.json)


def _print(status: AgentStatus, *, as_json: bool) -> None:
    print(json.dumps(asdict(status)) if as_json else _line(status), flush=True)


def _line(status: AgentStatus) -> str:
    said = [
        f"targets {status.targets:,}",
        f"probes sent {status.sent:,}",
        *(f"unsent ({reason}) {count:,}" for reason, count in status.unsent.items()),
        f"received {status.received:,}",
        *(f"dropped ({reason}) {count:,}" for reason, count in status.dropped.items()),
        f"exchanges with the controller {status.exchanges:,}",
        *([status.problem] if status.problem else []),
    ]
    return f"{status.host}: {', '.join(said)}"


if __name__ == "__main__":
    sys.exit(main())
