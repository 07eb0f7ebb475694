"""The processes of PyTorch ranks: forked by a zygote where it can enter their hosts, or each a program of its own."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from experiments.scenarios.real_hosts.laboratory import Laboratory
from topologies.namespaces.enter import Place

_LOG = logging.getLogger(__name__)

_MODULES = "experiments.scenarios.real_hosts"
_LONGEST_PACKET_BYTES = 1 << 16
_SETTINGS = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""Ranks share few cores, and sleep more than they compute. It is no warning that addresses here have no names."""
_LOST = -signal.SIGKILL
"""The status of a rank whose zygote has ended: the rank has ended with it."""


class Process(Protocol):
    """A process, as asyncio has it."""

    @property
    def returncode(self) -> int | None:
        """Its status, None as long as it runs."""

    async def wait(self) -> int:
        """Wait until it has ended; return its status."""

    def send_signal(self, number: int) -> None:
        """Send it a signal."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """A rank: its process, what it says, and where it is told something."""

    process: Process
    says: asyncio.StreamReader
    hears: asyncio.StreamWriter


class RankProcesses:
    """Starts ranks, as an async context manager; all that still run are killed on exit.

    Ranks say what they have to, and hear what they are told, by standard input and output. What has imported PyTorch
    once forks them into their hosts, which takes a fifth of the time. Hosts that a process cannot enter by itself, as
    Mininet's, start a program for each.

    Args:
        laboratory: The hosts.
        hosts: Names of those that get ranks.
    """

    def __init__(self, laboratory: Laboratory, hosts: Sequence[str]) -> None:
        self._laboratory = laboratory
        self._hosts = hosts
        self._forked: dict[int, _ForkedProcess] = {}
        self._started: list[asyncio.subprocess.Process] = []
        self._zygote: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._logging: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if any(self._laboratory.place(host) is not None for host in self._hosts):
            await self._start_zygote()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._started:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if self._zygote is not None:
            assert self._control is not None
            assert self._logging is not None
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
            if self._zygote.returncode is None:
                self._zygote.kill()
            await self._zygote.wait()
            await self._logging

    async def start(self, host: str, environment: Mapping[str, str], plan: str) -> RankProcess:
        """Start a rank in a host, with additions to the environment."""
        ours, theirs = socket.socketpair()
        with theirs:
            place = self._laboratory.place(host)
            process = (
                await self._start(host, environment, plan, theirs)
                if place is None
                else self._fork(place, environment, plan, theirs)
            )
        says, hears = await asyncio.open_unix_connection(sock=ours)
        return RankProcess(process, says, hears)

    async def _start_zygote(self) -> None:
        """Begin to import PyTorch: it is done when ranks are forked."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        with theirs:
            self._zygote = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", f"{_MODULES}.zygote", str(os.getpid())),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ | _SETTINGS,
                start_new_session=True,
            )
        self._logging = asyncio.create_task(_log(self._zygote))
        asyncio.get_running_loop().add_reader(self._control, self._read)

    async def _start(
        self, host: str, environment: Mapping[str, str], plan: str, theirs: socket.socket
    ) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *self._laboratory.command(host, sys.executable, "-P", "-m", f"{_MODULES}.torch_rank", plan),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=theirs.fileno(),
            env={**os.environ, **_SETTINGS, **environment},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _fork(self, place: Place, environment: Mapping[str, str], plan: str, theirs: socket.socket) -> "_ForkedProcess":
        assert self._control is not None
        number = len(self._forked)
        self._forked[number] = _ForkedProcess(number, self._control)
        request = {"fork": number, "place": place._asdict(), "environment": dict(environment), "plan": plan}
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
        except OSError:  # the zygote has ended
            self._forked[number].ended(_LOST)
        return self._forked[number]

    def _read(self) -> None:
        """Take what the zygote says."""
        assert self._control is not None
        try:
            packet = self._control.recv(_LONGEST_PACKET_BYTES)
        except ConnectionError:
            packet = b""
        if packet:
            answer = json.loads(packet)
            self._forked[answer["ended"]].ended(answer["status"])
            return
        asyncio.get_running_loop().remove_reader(self._control)
        for process in self._forked.values():
            process.ended(_LOST)


class _ForkedProcess:
    """A rank that the zygote has forked."""

    def __init__(self, number: int, control: socket.socket) -> None:
        self._number = number
        self._control = control
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def ended(self, status: int) -> None:
        if not self._status.done():
            self._status.set_result(status)

    @property
    def returncode(self) -> int | None:
        return self._status.result() if self._status.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._status)

    def send_signal(self, number: int) -> None:
        if not self._status.done():
            self._control.send(json.dumps({"kill": self._number, "signal": number}).encode())


async def _log(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        _LOG.warning("zygote: %s", line.decode(errors="replace").rstrip())
