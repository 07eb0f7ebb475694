"""Run a server with settings from stdin; it prints a line once all hosts are there, and ends when stdin does."""

import asyncio
import signal
import sys

from runtime.server.service import Server
from runtime.server.settings import ServerSettings
from runtime.settings import read_settings
from runtime.substrates.local import LocalSubstrate


async def _serve(settings: ServerSettings) -> None:
    server = Server(settings, LocalSubstrate())
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, server.stop)
    loop.add_reader(sys.stdin.fileno(), server.stop)
    await server.serve(lambda: print("ready", flush=True))


if __name__ == "__main__":
    asyncio.run(_serve(read_settings(ServerSettings, sys.stdin)))
