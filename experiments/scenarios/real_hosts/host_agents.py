"""The probe agents of a run's hosts, each a process in its host, which is started again where it ends by itself."""

import asyncio
import logging
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from experiments.scenarios.real_hosts.laboratory import Laboratory
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

_STARTS_AGAIN_AFTER_S = 1.0


class HostAgents:
    """``trainyard agent`` at every host, as an async context manager.

    Args:
        fabric: The fabric, at the rates that its links have.
        laboratory: The hosts.
        controller: The controller's address, as hosts reach it.
        folder: A folder for the tokens by which agents are known again.
    """

    def __init__(self, fabric: Fabric, laboratory: Laboratory, controller: str, folder: Path) -> None:
        self._fabric = fabric
        self._laboratory = laboratory
        self._controller = controller
        self._folder = folder
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._running = [asyncio.create_task(self._run(host)) for host in self._fabric.hosts]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, host: str) -> None:
        nics = [
            f"--nic={self._laboratory.interface(host, nic.index)}@{self._fabric.links[nic.link].rate_bps / 1e9!r}"
            for nic in self._fabric.nics[host]
        ]
        token = self._folder / f"agent-{self._fabric.host_index[host]}.token"
        program = (sys.executable, "-P", "-m", "hostlib.agent", "--host", host, *nics)
        options = ("--controller", self._controller, "--owner-token-file", str(token))
        while True:
            try:
                status, said = await _run_to_its_end(self._laboratory.command(host, *program, *options))
            except OSError as error:
                _LOG.warning("the agent of %s cannot be started: %s", host, error)
            else:
                _LOG.warning("the agent of %s has ended (status %s): %s", host, status, said)
            await asyncio.sleep(_STARTS_AGAIN_AFTER_S)


async def _run_to_its_end(command: list[str]) -> tuple[int | None, str]:
    """Run a command; return its status and what it complains of. It is gone when this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, complaint = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return process.returncode, complaint.decode(errors="replace").strip()
