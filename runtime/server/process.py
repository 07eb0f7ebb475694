"""The server as a process on the substrate ``local``."""

import asyncio
import signal
from collections.abc import Callable
from typing import IO

from runtime.server.service import Server
from runtime.server.settings import ServerSettings
from runtime.substrates.local import LocalSubstrate


async def serve(settings: ServerSettings, on_ready: Callable[[], None], parent: IO[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until ``parent`` is at its end: whoever started the server is gone.

    Raises OSError where the address is taken.
    """
    commands = {number: host.command for number, host in settings.network_hosts.items()}
    server = Server(settings, LocalSubstrate(commands))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, server.stop)
    if parent is not None:
        loop.add_reader(parent.fileno(), server.stop)
    await server.serve(on_ready)
