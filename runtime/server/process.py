"""The server as a process, with hosts on this machine or on a Ray cluster."""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import IO

from runtime.addresses import bound, listening
from runtime.server.service import Server
from runtime.server.settings import ServerSettings
from runtime.substrates.interface import Substrate
from runtime.substrates.local import LocalSubstrate
from runtime.substrates.ray_cluster import RaySubstrate


async def serve(settings: ServerSettings, on_ready: Callable[[str], None], parent: IO[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until ``parent`` is at its end: whoever started the server is gone.

    ``on_ready`` is called with the address once all hosts are there. Raises OSError where the address is taken,
    SubstrateError where hosts cannot be started, and ValueError for credentials of the environment that cannot be used.
    """
    commands = {number: host.command for number, host in settings.network_hosts.items()}
    islands = {each.name: (each.devices_per_host,) * each.hosts for each in settings.islands}
    cluster = None if settings.ray is None else RaySubstrate(settings.ray, islands)
    substrate: Substrate = cluster or LocalSubstrate(commands)
    try:
        if cluster is not None:
            address = settings.address or cluster.address
            settings = replace(settings, address=address, folder=cluster.folder, network="machines")
        listener = listening(settings.address)
        settings = replace(settings, address=bound(listener, settings.address))
        await _serve(Server(settings, substrate), listener, partial(on_ready, settings.address), parent)
    finally:
        substrate.close()


async def _serve(server: Server, listener: socket.socket, on_ready: Callable[[], None], parent: IO[str] | None) -> None:
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, server.stop)
    if parent is not None:
        loop.add_reader(parent.fileno(), server.stop)
    await server.serve(listener, on_ready)
