"""The PyTorch jobs of a run: their ranks are ready before the run begins, and train when their jobs arrive."""

import asyncio
import json
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Self

from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.programs import MASTER_PORT, OUTPUT, REPORT, lines
from experiments.scenarios.real_hosts.rank_processes import RankProcess, RankProcesses
from experiments.scenarios.real_hosts.ranks import RanksError
from experiments.scenarios.real_hosts.training_plan import TrainingPlan
from experiments.scenarios.timeline import Timeline
from experiments.scenarios.transfers import IterationEnd, JobEnd, NetworkEvent
from topologies.printable import printable
from workloads.jobs import TrainingJob
from workloads.parallelism.torch_jobs import BUCKET_BYTES
from workloads.workload import TorchComputation, TorchWorkload

_READY, _PAUSED = b"ready", b"paused"
_READY_WITHIN_S = 180.0
_OTHERS_FAIL_WITHIN_S = 10.0
"""After one rank of a job has ended, so that the failure has what the others say of it."""
_LAST_LINES = 100
"""Of what a rank says: an error of PyTorch comes with long tracebacks."""


def torch_jobs(jobs: Sequence[TrainingJob]) -> list[TrainingJob]:
    """Return those that are PyTorch jobs."""
    return [job for job in jobs if isinstance(job.specification.workload, TorchWorkload)]


class TorchPrograms:
    """Runs the ranks of PyTorch jobs, as an async context manager; all that still run are killed on exit.

    A job trains for its ``iterations``, or until its ``duration_s`` has passed, and then leaves, unless ``is_kept``:
    then its ranks wait to be started again.

    Args:
        jobs: The jobs of the run; PyTorch jobs are run.
        laboratory: The hosts.
        processes: Start the ranks.
        scale: Divides bytes.
        seed: Of the models.
        is_kept: Whether ranks wait at the end of their jobs.
    """

    happened: Callable[[NetworkEvent], None]
    """Called with the ends of iterations and of jobs. Set it before jobs are started."""

    def __init__(
        self,
        jobs: Sequence[TrainingJob],
        laboratory: Laboratory,
        processes: RankProcesses,
        *,
        scale: float,
        seed: int,
        is_kept: bool,
    ) -> None:
        self._jobs = {job.name: job for job in torch_jobs(jobs)}
        self._numbers = {job.name: number for number, job in enumerate(jobs)}
        self._laboratory = laboratory
        self._scale = scale
        self._seed = seed
        self._is_kept = is_kept
        self._processes = processes
        self._ranks: dict[str, list[RankProcess]] = {}
        self._ready: dict[str, asyncio.Event] = {name: asyncio.Event() for name in self._jobs}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._pausing: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, str] = {}
        self._started: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for timer in self._pausing.values():
            timer.cancel()
        for watching in self._watching.values():
            watching.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)

    async def get_ready(self, controller: str) -> None:
        """Start all ranks; return when all jobs have trained for an iteration.

        Args:
            controller: The controller's address, as programs in hosts reach it.

        Raises:
            RanksError: Ranks do not start, or do not find each other.
        """
        for name, job in self._jobs.items():
            self._ranks[name] = [
                await self._processes.start(host, self._environment(job, rank, controller), self._plan(job))
                for rank, host in enumerate(job.hosts)
            ]
            self._watching[name] = asyncio.create_task(self._watch(name))
        try:
            async with asyncio.timeout(_READY_WITHIN_S):
                for ready in self._ready.values():
                    await ready.wait()
        except TimeoutError:
            silent = ", ".join(name for name, ready in self._ready.items() if not ready.is_set())
            raise RanksError(f"jobs were not ready within {_READY_WITHIN_S:g} s: {silent}") from None
        for name, failure in self._failures.items():
            raise RanksError(f"job {name}: {failure}")

    def runs(self, job: str) -> bool:
        """Return whether a job is a PyTorch job."""
        return job in self._jobs

    def start(self, job: str) -> None:
        """Have a job train."""
        self._started.add(job)
        if job in self._failures:
            self._end(job, self._failures[job])
            return
        specification = self._jobs[job].specification
        self._tell(job, f"run {specification.iterations or 0}\n")
        if specification.duration_s is not None:
            loop = asyncio.get_running_loop()
            self._pausing[job] = loop.call_later(specification.duration_s, self._tell, job, "pause\n")

    def _tell(self, job: str, command: str) -> None:
        """Tell the first rank of a job something; the others follow it."""
        first = self._ranks[job][0]
        if not first.hears.is_closing():
            first.hears.write(command.encode())

    def _dismiss(self, job: str) -> None:
        first = self._ranks[job][0]
        with suppress(OSError):  # it has ended
            first.hears.write_eof()

    def _end(self, job: str, failure: str | None) -> None:
        """Say that a job has ended, where it had begun."""
        if job in self._started:
            self._started.remove(job)
            if job in self._pausing:
                self._pausing.pop(job).cancel()
            self.happened(JobEnd(job, failure))

    async def _watch(self, name: str) -> None:
        """Follow the ranks of a job to their end."""
        ranks = self._ranks[name]
        ends = [asyncio.create_task(self._follow(name, rank, process)) for rank, process in enumerate(ranks)]
        try:
            ended, others = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if others and any(end.result() for end in ended):
                also_ended, _ = await asyncio.wait(others, timeout=_OTHERS_FAIL_WITHIN_S)
                ended |= also_ended
            elif others:
                await asyncio.wait(others)
            failures = [end.result() for end in ends if end.done()]
            if any(failures):
                self._failures[name] = "; ".join(failure for failure in failures if failure)
                self._end(name, self._failures[name])
            else:
                self._end(name, None)
            self._ready[name].set()
        finally:
            for process in ranks:
                if process.process.returncode is None:
                    with suppress(ProcessLookupError):
                        process.process.send_signal(signal.SIGKILL)
            await asyncio.gather(*ends, return_exceptions=True)
            for process in ranks:
                process.hears.close()

    async def _follow(self, name: str, rank: int, process: RankProcess) -> str | None:
        """Take what a rank says until it has ended; return how it has failed, None where it has not."""
        last: deque[str] = deque(maxlen=_LAST_LINES)
        async for line in lines(process.says):
            said = printable(line.decode(errors="replace").rstrip())
            OUTPUT.info("%s at %s: %s", name, self._jobs[name].hosts[rank], said)
            if rank != 0 or not self._take(name, line):
                last.append(said)
        status = await process.process.wait()
        if status == 0:
            return None
        error = next((said for said in reversed(last) if "Error" in said), last[-1] if last else "")
        return f"the rank at {self._jobs[name].hosts[rank]} has ended with status {status}{error and f': {error}'}"

    def _take(self, name: str, line: bytes) -> bool:
        """Take what the first rank of a job says; return whether it was for the run."""
        if report := REPORT.search(line):
            timeline = Timeline.from_json(line[report.end() :]).before_scaling(self._scale)
            self.happened(IterationEnd(name, float(report["took_s"]), timeline))
        elif line == _READY:
            self._ready[name].set()
        elif line == _PAUSED:
            if not self._is_kept:
                self._dismiss(name)
            self._end(name, None)
        else:
            return False
        return True

    def _environment(self, job: TrainingJob, rank: int, controller: str) -> dict[str, str]:
        host = job.hosts[rank]
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(job.hosts)),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": job.hosts[0],
            "MASTER_PORT": str(MASTER_PORT + self._numbers[job.name]),
            "GLOO_SOCKET_IFNAME": self._laboratory.interface(host, job.placement.nics[host][0]),
            "TRAINYARD_JOB": job.name,
            "TRAINYARD_CONTROLLER": controller,
        }

    def _plan(self, job: TrainingJob) -> str:
        workload = job.specification.workload
        assert isinstance(workload, TorchWorkload)
        plan = TrainingPlan(
            parallelism=workload.parallelism,
            is_real=workload.computation is TorchComputation.REAL,
            compute_s=workload.compute_s,
            parameter_bytes=(workload.parameter_bytes or 0.0) / self._scale,
            activation_bytes=(workload.activation_bytes or 0.0) / self._scale,
            layers=workload.layers or 1,
            micro_batches=workload.micro_batches or 1,
            bucket_bytes=BUCKET_BYTES / self._scale,
            seed=self._seed,
        )
        return json.dumps(asdict(plan))
