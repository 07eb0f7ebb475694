"""Kills processes of a run on real hosts at random moments, and finds out whether the rest goes on and nothing is left.

Of the emulator, the controller and the probe agents the run starts another one, and all jobs go on. A job ends with any
of its ranks, says so in the result, and the others go on. With the run itself everything ends. Each is SIGKILL.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.real_hosts.run_processes import Part, RunProcesses, job_and_host
from experiments.scenarios.real_hosts.scaled_fabric import default_real_scale
from workloads.scenario import Scenario
from workloads.workload import PhasesWorkload

PATIENCE_S = 120.0
_LOOK_S = 0.05
_LATEST_S, _LATEST_FROM_START_S = 2.0, 12.0
_ITERATIONS = 3
"""So many times the bytes of an iteration show that a whole one lies between."""
_MESSAGES = {
    Part.EMULATOR: "the emulator has ended",
    Part.CONTROLLER: "the controller has ended",
    Part.AGENT: "the agent of ",
}


@dataclass(frozen=True, slots=True)
class Round:
    """A kill, and what went wrong afterwards.

    Attributes:
        part: What was killed.
        recovery_s: How long it took until every job that must go on had completed an iteration; for the run: until
            everything was gone.
        problems: One line each.
    """

    part: Part
    recovery_s: float
    problems: tuple[str, ...]


class FaultyRun:
    """A run of a scenario in network namespaces, of which processes are killed, as an async context manager.

    Args:
        scenario: Its jobs have phases, no two share a host, and hosts send probes. The jobs outlast the kills.
        chance: Chooses victims and moments.
        is_real_time: Whether the emulator is to ask for real-time priority.
        patience_s: How long to wait for what must happen.
    """

    def __init__(
        self, scenario: Scenario, chance: random.Random, *, is_real_time: bool, patience_s: float = PATIENCE_S
    ) -> None:
        self._scenario = scenario
        self._chance = chance
        self._is_real_time = is_real_time
        self._patience_s = patience_s
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")
        self._process: asyncio.subprocess.Process
        self._processes: RunProcesses
        self._reading: asyncio.Task[None]
        self._said = ""
        self._printed = ""
        self._hosts = {(job.name, host) for job in scenario.jobs for host in job.hosts or ()}

    async def __aenter__(self) -> Self:
        scenario = Path(self._folder.name, "scenario.json")
        scenario.write_text(self._scenario.model_dump_json(exclude_unset=True))
        options = ("--on", "namespaces", "--json", *(["--real-time"] if self._is_real_time else []))
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "trainyard", "run", str(scenario), *options),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"TMPDIR": self._folder.name},
            start_new_session=True,
        )
        self._processes = RunProcesses(self._process.pid)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._reading
        self._folder.cleanup()

    async def play(self, parts: Sequence[Part]) -> list[Round]:
        """Kill these in order, and then a rank of every job that is left, so that the run ends with a result.

        The run itself can be the last. Where it is the only one, it is killed while it starts.
        """
        rounds: list[Round] = []
        if parts[0] is Part.RUN:
            await asyncio.sleep(self._chance.uniform(0, _LATEST_FROM_START_S))
            return [await self._kill_run()]
        problems = await self._go_on("the jobs do not begin")
        for part in parts:
            if problems:
                return [*rounds, Round(part, 0.0, problems)]
            await asyncio.sleep(self._chance.uniform(0, _LATEST_S))
            rounds.append(await (self._kill_run() if part is Part.RUN else self._kill(part)))
            problems = rounds[-1].problems
        if parts[-1] is not Part.RUN and not problems:
            rounds[-1] = replace(rounds[-1], problems=await self._end())
        return rounds

    # ---- kills ------------------------------------------------------------------------------------------------------

    async def _kill(self, part: Part) -> Round:
        """Kill a process, and wait until the others have gone on."""
        before, said = self._processes.of(part), len(self._said)
        victim = self._chance.choice(sorted(before))
        began_s = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        if part is Part.RANK:
            problems = await self._lose_job(job_and_host(before[victim])[0])
        else:

            def is_replaced() -> bool:
                return any(pid not in before for pid in self._processes.of(part))

            problems = await self._until(is_replaced, f"no other {part} is started")
            problems += await self._until(lambda: _MESSAGES[part] in self._said[said:], f"no message says {part}")
        problems += await self._go_on(f"jobs do not go on without the {part}")
        return Round(part, time.monotonic() - began_s, problems)

    async def _kill_run(self) -> Round:
        self._processes.look()
        began_s = time.monotonic()
        self._process.kill()
        await self._process.wait()
        problems = await self._nothing_is_left()
        return Round(Part.RUN, time.monotonic() - began_s, problems)

    async def _lose_job(self, job: str) -> tuple[str, ...]:
        """Wait until all ranks of a job have ended, as one of them has."""
        self._hosts = {(each, host) for each, host in self._hosts if each != job}

        def are_gone() -> bool:
            return all(job_and_host(command)[0] != job for command in self._processes.of(Part.RANK).values())

        return await self._until(are_gone, f"other ranks of {job} are still there", outlives_run=True)

    async def _end(self) -> tuple[str, ...]:
        """End all jobs by their ranks, and wait for the result of the run."""
        while self._hosts:
            ranks = self._processes.of(Part.RANK)
            if not ranks:
                return (f"the run has lost its ranks: {self._said.strip()[-300:]}",)
            victim = self._chance.choice(sorted(ranks))
            os.kill(victim, signal.SIGKILL)
            await self._lose_job(job_and_host(ranks[victim])[0])
        problems = await self._until(lambda: self._process.returncode is not None, "the run does not end")
        if problems:
            return problems
        await self._reading
        if self._process.returncode:
            return (f"the run has ended with status {self._process.returncode}: {self._said.strip()[-300:]}",)
        failures: Mapping[str, str | None] = {job["name"]: job["failure"] for job in json.loads(self._printed)["jobs"]}
        silent = [name for name, failure in failures.items() if "the rank at " not in (failure or "")]
        return (*(f"the result does not say that {name} has failed" for name in silent), *await self._nothing_is_left())

    async def _nothing_is_left(self) -> tuple[str, ...]:
        folder = Path(self._folder.name)

        def left() -> list[str]:
            return [*self._processes.left(), *(path.name for path in folder.glob("trainyard-*/"))]

        problems = await self._until(lambda: not left(), "something is left", outlives_run=True)
        return tuple(f"{problem}: {', '.join(left())}" for problem in problems)

    # ---- waiting ----------------------------------------------------------------------------------------------------

    async def _go_on(self, problem: str) -> tuple[str, ...]:
        """Wait until all jobs that are left have completed an iteration, as what their hosts send shows."""
        scale = self._scenario.scale or default_real_scale(self._scenario.topology.build())
        sizes = {job.name: _iteration_bytes(job.workload) / scale for job in self._scenario.jobs}
        before = self._processes.sent_bytes()

        def have_all_sent() -> bool:
            now = self._processes.sent_bytes()
            return all(
                now.get((job, host), 0) - before.get((job, host), 0) >= _ITERATIONS * sizes[job]
                for job, host in self._hosts
            )

        return await self._until(have_all_sent, problem)

    async def _until(self, holds: Callable[[], bool], problem: str, *, outlives_run: bool = False) -> tuple[str, ...]:
        """Wait until something holds; return the problem where it does not, or where the run has ended before."""
        deadline_s = time.monotonic() + self._patience_s
        while not holds():
            if not outlives_run and self._process.returncode is not None:
                return (f"{problem}, because the run has ended: {self._said.strip()[-300:]}",)
            if time.monotonic() > deadline_s:
                return (problem,)
            await asyncio.sleep(_LOOK_S)
        return ()

    async def _read(self) -> None:
        """Keep what the run says."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None

        async def keep_messages(stream: asyncio.StreamReader) -> None:
            while line := await stream.readline():
                self._said += line.decode(errors="replace")

        messages = asyncio.create_task(keep_messages(self._process.stderr))
        self._printed = (await self._process.stdout.read()).decode()
        await messages


def _iteration_bytes(workload: object) -> float:
    assert isinstance(workload, PhasesWorkload)
    return workload.bytes or 0.0
