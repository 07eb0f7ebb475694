"""Jobs of two ranks: a program in two processes, on loopback or on two hosts of a controller's fabric."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.clock import WallClock
from tests.hostlib.served import Served, served
from tests.namespaces import namespaces
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "programs"
ATTACHED = ("-m", "hostlib", "run")
"""What stands before the name of a script that is to be attached."""

_LOOPBACK = "127.0.0.1"
_PORT = 29500
"""Below those that the kernel gives to connections."""
_ADDRESSES = {"h0": "10.0.0.1", "h2": "10.0.2.1"}
"""Of NICs of the controller's fabric."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its status, what it wrote, and when."""

    status: int | None
    output: str
    errors: str
    ended_s: float


@dataclass(frozen=True)
class Place:
    """Where ranks run: the address of each, the interface, what enters its network, and a port for the store.

    Where the network is the job's own, the port and those after it are free, and no connection takes one of them.
    """

    addresses: tuple[str, ...] = (_LOOPBACK, _LOOPBACK)
    interface: str = "lo"
    prefixes: tuple[tuple[str, ...], ...] = ((), ())
    port: int | None = None


@dataclass(frozen=True)
class Fabric:
    """A controller, the environment of jobs that are to find it, and where they are on its fabric."""

    controller: Served
    environment: dict[str, str]
    place: Place


class Ranks:
    """The processes of a job; ``folder`` has what they write."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process], folder: Path) -> None:
        self._processes = processes
        self.folder = folder

    async def ended(self) -> list[Ended]:
        """Wait until all have ended."""
        return list(await asyncio.gather(*map(_ended, self._processes)))

    async def results(self, *expected: str) -> list[Any]:
        """Wait until all have ended well; return what each has written.

        ``exit_s`` is how long it took to end after that, and ``errors`` has the lines of standard error that contain
        none of the texts that are expected.
        """
        ended = await self.ended()
        for rank, each in enumerate(ended):
            assert each.status == 0, f"rank {rank} ended with status {each.status}: {each.errors}"
        results = [json.loads((self.folder / f"result-{rank}").read_text()) for rank in range(len(ended))]
        for result, each in zip(results, ended, strict=True):
            result["errors"] = unexpected(each.errors, *expected)
            result["exit_s"] = each.ended_s - result["ended_s"]
        return results

    def states(self) -> list[dict[str, Any] | None]:
        """What the ranks say of their network; None: nothing yet."""
        found = [self.folder / f"state-{rank}" for rank in range(len(self._processes))]
        return [json.loads(path.read_text())["network"] if path.exists() else None for path in found]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Raises AssertionError where a rank ends before."""
        await until(lambda: holds() or any(process.returncode is not None for process in self._processes))
        if not holds():
            self.end()
            raise AssertionError(f"a rank has ended: {[each.errors for each in await self.ended()]}")

    async def until_levels(self) -> None:
        """Wait until every rank sends at the levels of a Plan."""
        await self.until(lambda: all(state and state["plan_number"] is not None for state in self.states()))

    async def until_steps(self, steps: int) -> None:
        """Wait until every rank has made so many further steps."""
        before = self._steps()
        await self.until(lambda: min(now - old for now, old in zip(self._steps(), before, strict=True)) >= steps)

    def stop(self) -> None:
        """Have them end by themselves."""
        (self.folder / "stop").touch()

    def end(self) -> None:
        """Kill those that are left."""
        for process in self._processes:
            if process.returncode is None:
                process.kill()

    def _steps(self) -> list[int]:
        found = [self.folder / f"state-{rank}" for rank in range(len(self._processes))]
        return [json.loads(path.read_text())["steps"] if path.exists() else 0 for path in found]


def unexpected(errors: str, *expected: str) -> list[str]:
    """The lines of standard error that contain no text that is expected."""
    # So it is in network namespaces; and what the first rank says when all is well.
    known = (*expected, "The hostname of the client socket cannot be retrieved", " is registered with unix:")
    return [line for line in errors.splitlines() if line.strip() and not any(text in line for text in known)]


@asynccontextmanager
async def ranks(
    program: str,
    folder: Path,
    *arguments: str,
    before: Sequence[str] = ATTACHED,
    place: Place = Place(),  # it is frozen
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Ranks]:
    """Run ``python BEFORE programs/PROGRAM FOLDER ARGUMENTS`` twice, with the environment of two ranks."""
    folder.mkdir()
    port = place.port or free_port()
    processes = []
    given = dict(environment or {})
    for rank, prefix in enumerate(place.prefixes):
        variables = {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": place.addresses[0],
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": place.interface,
            "OMP_NUM_THREADS": "1",
        }
        processes.append(await _started(program, folder, arguments, before, prefix, variables | given))
    running = Ranks(processes, folder)
    try:
        yield running
    finally:
        running.end()
        await running.ended()


async def run_launcher(command: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Run Python with a command line that starts ranks by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        return await _ended(process)
    finally:
        if process.returncode is None:
            process.kill()


@asynccontextmanager
async def fabric(folder: Path) -> AsyncIterator[Fabric]:
    """A controller in this process, and two hosts of its fabric as namespaces; the test is skipped without root."""
    path = folder / "controller"
    with two_hosts() as place:
        async with served_at(path) as controller:
            yield Fabric(controller, environment_of(path), place)


def environment_of(path: Path) -> dict[str, str]:
    """What a job needs to find the controller at a path."""
    return {"TRAINYARD_CONTROLLER": f"unix:{path}"}


@asynccontextmanager
async def served_at(path: Path) -> AsyncIterator[Served]:
    """A controller at a Unix socket, which is in every network namespace."""
    async with served(f"unix:{path}", clock=WallClock()) as controller:
        yield controller


@contextmanager
def two_hosts() -> Iterator[Place]:
    """Two hosts of the controller's fabric, each in a namespace, joined by a cable that stands for the fabric."""
    with namespaces(*_ADDRESSES) as made:
        made.cable(*((host, "eth0") for host in _ADDRESSES))
        for (host, address), peer in zip(_ADDRESSES.items(), reversed(_ADDRESSES.values()), strict=True):
            made.ip(host, "address", "add", address, "peer", peer, "dev", "eth0")
        prefixes = tuple(tuple(made.command(host)) for host in _ADDRESSES)
        yield Place(tuple(_ADDRESSES.values()), "eth0", prefixes, _PORT)


async def _started(
    program: str,
    folder: Path,
    arguments: Sequence[str],
    before: Sequence[str],
    prefix: Sequence[str],
    variables: Mapping[str, str],
) -> asyncio.subprocess.Process:
    command = [*prefix, sys.executable, *before, str(PROGRAMS / f"{program}.py"), str(folder), *arguments]
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _ended(process: asyncio.subprocess.Process) -> Ended:
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    return Ended(process.returncode, output.decode(), errors.decode(), time.monotonic())
