"""The stand-in ranks of a run's jobs, each a process in its host, and the conversation with them."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from experiments.scenarios.real_hosts import rank
from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.real_flows import RealFlow
from topologies.namespaces.host_network import socket_priority

_LOG = logging.getLogger(__name__)

_CONNECTS_WITHIN_S = 120.0
_OTHERS_SPEAK_WITHIN_S = 0.3
_LONGEST_LINE_BYTES = 1 << 24

Host = tuple[str, str]
"""Names of a job and of one of its hosts."""


class RanksError(Exception):
    """Ranks did not start or did not reach each other; the text says which."""


class Ranks:
    """A rank for every host of every job, with a TCP connection for every flow, as an async context manager.

    Args:
        laboratory: The hosts.
        flows: The flows.
        hosts_of: The hosts of every job that has ranks.
        folder: A folder for the control socket.
        on_arrival: Called with a flow's number and the machine's monotonic time, in nanoseconds, when all bytes of a
            transfer of it have been read.
        on_failure: Called with a job's name and a reason when one of its ranks has ended by itself.
    """

    def __init__(
        self,
        laboratory: Laboratory,
        flows: Sequence[RealFlow],
        hosts_of: Mapping[str, Sequence[str]],
        folder: Path,
        *,
        on_arrival: Callable[[int, int], None],
        on_failure: Callable[[str, str], None],
    ) -> None:
        self._laboratory = laboratory
        self._flows = flows
        self._ranks = [(job, host) for job, hosts in hosts_of.items() for host in hosts]
        self._socket = folder / "ranks.sock"
        self._on_arrival = on_arrival
        self._on_failure = on_failure
        self._processes: dict[Host, asyncio.subprocess.Process] = {}
        self._controls: dict[Host, asyncio.StreamWriter] = {}
        self._watching: list[asyncio.Task[None]] = []
        self._unopened = {flow.number for flow in flows}
        self._has_changed = asyncio.Event()
        self._is_connected = False
        self._ended: list[tuple[str, str, bool]] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._converse, self._socket, limit=_LONGEST_LINE_BYTES)
        try:
            for job, host in self._ranks:
                program = (sys.executable, "-I", "-S", rank.__file__, str(self._socket), job, host)
                self._processes[job, host] = await asyncio.create_subprocess_exec(
                    *self._laboratory.command(host, *program),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
                self._watching.append(asyncio.create_task(self._watch(job, host)))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def connect(self) -> None:
        """Open the connections of all flows. Raises RanksError where that takes two minutes."""
        try:
            async with asyncio.timeout(_CONNECTS_WITHIN_S):
                while len(self._controls) < len(self._ranks):
                    await self._changed_or_failed()
                self._open()
                while self._unopened:
                    await self._changed_or_failed()
                self._is_connected = True
        except TimeoutError:
            silent = [f"{job} at {host}" for job, host in self._ranks if (job, host) not in self._controls]
            waiting = [str(flow.five_tuple) for flow in self._flows if flow.number in self._unopened]
            what = f"ranks have not started: {', '.join(silent)}" if silent else f"no connection: {', '.join(waiting)}"
            raise RanksError(f"within {_CONNECTS_WITHIN_S:g} s, {what:.500}") from None

    def send(self, flows: Mapping[int, int]) -> None:
        """Have ranks send this many bytes of each of these flows now."""
        self._tell("send", ((self._flows[number], (number, size_bytes)) for number, size_bytes in flows.items()))

    def prioritise(self, queues: Mapping[int, int]) -> None:
        """Put flows into these queues of their hosts' NICs; 7 is the most urgent."""
        items = ((self._flows[number], (number, socket_priority(queue))) for number, queue in queues.items())
        self._tell("prioritise", items)

    def end_job(self, job: str) -> None:
        """End the ranks of a job."""
        for name, host in self._ranks:
            process = self._processes.get((name, host))
            if name == job and process is not None and process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()

    def _open(self) -> None:
        listening = {(flow.key[0], flow.destination, _ends(flow)[2:]) for flow in self._flows}
        for job, host, where in sorted(listening):
            self._write((job, host), {"listen": [where]})
        self._tell("connect", ((flow, (flow.number, *_ends(flow))) for flow in self._flows))

    def _tell(self, what: str, items: Iterable[tuple[RealFlow, tuple[Any, ...]]]) -> None:
        """Send items to the ranks that send the flows beside them."""
        of_rank: dict[Host, list[tuple[Any, ...]]] = {}
        for flow, item in items:
            of_rank.setdefault((flow.key[0], flow.source), []).append(item)
        for rank_of, found in of_rank.items():
            self._write(rank_of, {what: found})

    def _write(self, to: Host, message: dict[str, Any]) -> None:
        if to in self._controls:
            self._controls[to].write(json.dumps(message).encode() + b"\n")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take what a rank says, until it ends."""
        try:
            who = json.loads(await reader.readline())
            self._controls[who["job"], who["host"]] = writer
            self._has_changed.set()
            while line := await reader.readline():
                said = json.loads(line)
                if "opened" in said:
                    self._unopened.difference_update(said["opened"])
                    self._has_changed.set()
                for number, at_ns in said.get("arrived", ()):
                    self._on_arrival(number, at_ns)
        except (ValueError, ConnectionError) as error:
            _LOG.warning("a rank's conversation has ended: %s", error)
        finally:
            writer.close()

    async def _watch(self, job: str, host: str) -> None:
        _, complaint = await self._processes[job, host].communicate()
        status = self._processes[job, host].returncode
        self._controls.pop((job, host), None)
        said = complaint.decode(errors="replace").strip()
        self._ended.append((job, f"the rank at {host} has ended: {said or f'exit status {status}'}", not said))
        self._has_changed.set()
        if self._is_connected:
            # The one that has died without a word is the cause, and others that miss it may say so first.
            await asyncio.sleep(_OTHERS_SPEAK_WITHIN_S)
            reasons = [(is_silent, reason) for name, reason, is_silent in self._ended if name == job]
            self._on_failure(job, max(reasons)[1])

    async def _changed_or_failed(self) -> None:
        if self._ended:
            job, reason, _ = self._ended[0]
            raise RanksError(f"job {job}: {reason}")
        self._has_changed.clear()
        await self._has_changed.wait()

    async def _end(self) -> None:
        for watching in self._watching:
            watching.cancel()
        for job in {job for job, _ in self._ranks}:
            self.end_job(job)
        for process in self._processes.values():
            await process.wait()
        if self._server is not None:
            self._server.close()


def _ends(flow: RealFlow) -> tuple[str, int, str, int]:
    ends = flow.five_tuple
    source, destination = str(IPv4Address(ends.source_address)), str(IPv4Address(ends.destination_address))
    return source, ends.source_port, destination, ends.destination_port
