"""The commands of a run's jobs, as processes in their hosts."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.transfers import IterationEnd, JobEnd, NetworkEvent
from topologies.fabric import Fabric
from topologies.printable import printable
from workloads.jobs import TrainingJob
from workloads.workload import CommandWorkload

OUTPUT = logging.getLogger("trainyard.output")
"""Takes every line that the programs of jobs print."""
REPORT = re.compile(
    rb"(?P<by>trainyard: )?iteration \d+ took (?P<took_s>\d+(?:\.\d+)?(?:e-?\d+)?) s\b(?:, (?P<ago_s>\d+\.\d+) s ago)?"
)
"""What rank 0 prints at the end of each iteration, or a moment later, where it is the host library that prints it."""
MASTER_PORT = 29500
"""Of the first job; each has one of its own."""
_LAST_LINES = 5
_ERROR = re.compile(r"(?:\[rank\d+\]: )?(?!\S*ChildFailedError)[\w.]*(?:Error|Exception)\b")
"""How a line begins that says why a program of Python has failed; torchrun has an error of its own for that."""
_ENDS_WITHIN_S = 10.0
_LONGEST_LINE_BYTES = 1 << 16


class CommandPrograms:
    """Runs the commands of jobs, as an async context manager; all that still runs is killed on exit.

    A program finds its rank in the environment as torch expects it (``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``,
    ``MASTER_PORT``), and ``TRAINYARD_JOB`` and ``TRAINYARD_CONTROLLER`` for the host library. The first rank prints
    ``iteration 3 took 1.042 s`` at the end of an iteration, or the host library does that for it; whoever is first
    counts. A job ends when all its programs have ended with status 0; it fails when one has ended with another.

    Args:
        jobs: The jobs of the run; those that have a command are run.
        laboratory: The hosts.
        fabric: Has the addresses of the hosts.
        controller: The controller's address, as programs in hosts reach it.
        happened: Called with the ends of iterations and of jobs.
    """

    def __init__(
        self,
        jobs: Sequence[TrainingJob],
        laboratory: Laboratory,
        fabric: Fabric,
        controller: str,
        happened: Callable[[NetworkEvent], None],
    ) -> None:
        self._jobs = {job.name: job for job in jobs if isinstance(job.specification.workload, CommandWorkload)}
        self._numbers = {job.name: number for number, job in enumerate(jobs)}
        self._laboratory = laboratory
        self._fabric = fabric
        self._controller = controller
        self._happened = happened
        self._running: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for running in self._running.values():
            running.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def runs(self, job: str) -> bool:
        """Return whether a job has a command, which is run in place of its phases."""
        return job in self._jobs

    def start(self, job: str) -> None:
        """Start the command of a job at its hosts now."""
        self._running[job] = asyncio.create_task(self._run(self._jobs[job]))

    async def _run(self, job: TrainingJob) -> None:
        """Run the programs of a job to their end, at most for its ``duration_s``, and say how they have ended."""
        processes: list[asyncio.subprocess.Process] = []
        try:
            for rank, host in enumerate(job.hosts):
                processes.append(await self._start(job, rank, host))
            ends = [asyncio.create_task(self._follow(job, rank, process)) for rank, process in enumerate(processes)]
            failures: set[str] = set()
            with suppress(TimeoutError):
                async with asyncio.timeout(job.specification.duration_s):
                    for end in asyncio.as_completed(ends):
                        if failure := await end:
                            failures.add(failure)
                            break
            self._happened(JobEnd(job.name, min(failures, default=None)))
        except Exception as error:  # a run that is not told of a job's end has none itself
            self._happened(JobEnd(job.name, str(error) or type(error).__name__))
        finally:
            await _end(processes)

    async def _start(self, job: TrainingJob, rank: int, host: str) -> asyncio.subprocess.Process:
        workload = job.specification.workload
        assert isinstance(workload, CommandWorkload)
        values = {
            "host": host,
            "rank": rank,
            "peers": ",".join(job.hosts),
            "job": job.name,
            "iterations": job.specification.iterations or 0,
        }
        environment = {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(job.hosts)),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": job.hosts[0],
            "MASTER_PORT": str(MASTER_PORT + self._numbers[job.name]),
            "TRAINYARD_JOB": job.name,
            "TRAINYARD_CONTROLLER": self._controller,
            "TRAINYARD_PRINT_ITERATIONS": "1",
        }
        return await asyncio.create_subprocess_exec(
            *self._laboratory.command(host, *(_filled(argument, values) for argument in workload.command)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ | environment,
            start_new_session=True,
        )

    async def _follow(self, job: TrainingJob, rank: int, process: asyncio.subprocess.Process) -> str | None:
        """Read what a program says until it has ended; return how it has failed, None where it has not."""
        assert process.stdout is not None
        last: list[str] = []
        error: list[str] = []
        reporter: bytes | None = None
        async for line in lines(process.stdout):
            said = printable(line.decode(errors="replace").rstrip())
            last = [*last, said][-_LAST_LINES:]
            error = [said] if _ERROR.match(said) else error
            OUTPUT.info("%s at %s: %s", job.name, job.hosts[rank], said)
            if rank == 0 and (report := REPORT.search(line)):
                by = report["by"] or b""
                reporter = by if reporter is None else reporter
                if by == reporter:
                    ago_s = float(report["ago_s"] or 0)
                    self._happened(IterationEnd(job.name, float(report["took_s"]), ago_s=ago_s))
        status = await process.wait()
        if status == 0:
            return None
        said = " | ".join([*(line for line in error if line not in last), *last])
        return f"the program at {job.hosts[rank]} has ended with status {status}: {said}"


async def _end(processes: Sequence[asyncio.subprocess.Process]) -> None:
    """Ask programs to end, and kill those that do not."""
    left = [process for process in processes if process.returncode is None]
    for process in left:
        with suppress(ProcessLookupError):
            process.terminate()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDS_WITHIN_S):
                for process in left:
                    await process.wait()
    finally:
        for process in left:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a program, which end with a line feed or, as progress bars do, a carriage return.

    A line that is too long comes in parts.
    """
    held = b""
    while octets := await stream.read(_LONGEST_LINE_BYTES):
        *lines, held = re.split(rb"[\r\n]", held + octets)
        if len(held) > _LONGEST_LINE_BYTES:
            lines, held = [*lines, held], b""
        for line in lines:
            if line:
                yield line
    if held:
        yield held


def _filled(argument: str, values: dict[str, object]) -> str:
    """Put values in place of their names in braces; other braces stay as they are."""
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", str(value))
    return argument
