"""Replay of a job, iteration after iteration: a state machine without clock or I/O, driven by a back end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workloads.events import HostDowntime
from workloads.jobs import TrainingJob
from workloads.task_graph import Computation, GroupTransfer


@dataclass(frozen=True, slots=True)
class StartComputation:
    """Ask the back end to call ``JobReplay.finish`` with this task at that time."""

    task: int
    name: str
    ends_at_s: float


@dataclass(frozen=True, slots=True)
class StartTransfer:
    """Ask the back end to send these flows of a group and call ``JobReplay.finish`` when all have arrived."""

    task: int
    group: str
    flows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HoldIteration:
    """Ask the back end to call ``JobReplay.begin_iteration`` at that time; the next iteration is held until then."""

    until_s: float


_NO_DOWNTIME = HostDowntime()

Action = StartComputation | StartTransfer | HoldIteration


def unstretched(_iteration: int, _task: int) -> float:
    """Return 1: every computation takes the time in its task graph."""
    return 1.0


def never_held(_now_s: float) -> float:
    """Return 0: every iteration begins when it can."""
    return 0.0


@dataclass(frozen=True, slots=True)
class ComputeInterval:
    """GPUs of the job on ``hosts``, or a ``share`` of them, computed during this time."""

    name: str
    hosts: tuple[str, ...]
    iteration: int
    start_s: float
    end_s: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class CommunicationInterval:
    """Flows of a group that started together were in flight during this time; they sent ``size_bytes``."""

    group: str
    iteration: int
    start_s: float
    end_s: float
    size_bytes: float


@dataclass(frozen=True, slots=True)
class ProfiledInterval:
    """A range that the profiler of a job's own program has seen."""

    name: str
    iteration: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Iteration:
    """A completed iteration. It starts at the end of the previous one, so time on hold counts."""

    number: int
    start_s: float
    end_s: float


class JobHistory:
    """What a job has done so far, by whoever runs it; ``departed_s`` is None until it has departed.

    ``failure`` says why it has departed before its time, None where it has not.
    """

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.computing: list[ComputeInterval] = []
        self.communicating: list[CommunicationInterval] = []
        self.profiled: list[ProfiledInterval] = []
        self.iterations: list[Iteration] = []
        self.departed_s: float | None = None
        self.failure: str | None = None

    @property
    def departed(self) -> bool:
        """Whether the job has departed."""
        return self.departed_s is not None


class JobReplay(JobHistory):
    """The state of a job: returns what to start, takes what has ended, and keeps the record.

    The job departs after its ``iterations``, or after the iteration in which ``duration_s`` since its arrival ends.
    ``delay_s`` returns for how many seconds to hold an iteration that could begin. ``stretch`` returns, for an
    iteration and a task, the factor on a computation's duration. ``downtime`` has the times when hosts are down.

    Every method raises ValueError for a call that does not fit the state, such as the end of a task that is not running
    or a time before the last one.
    """

    def __init__(
        self,
        job: TrainingJob,
        delay_s: Callable[[float], float] = never_held,
        stretch: Callable[[int, int], float] = unstretched,
        downtime: HostDowntime = _NO_DOWNTIME,
    ) -> None:
        super().__init__(job)
        self._downtime = downtime
        self._delay_s = delay_s
        self._stretch = stretch
        self._sizes_bytes = {
            number: job.graph.size_bytes(task)
            for number, task in enumerate(job.graph.tasks)
            if isinstance(task, GroupTransfer)
        }
        self._num_before = [len(set(task.after)) for task in job.graph.tasks]
        self._started: dict[int, float] = {}
        self._waits_for: list[int] = []
        self._unfinished = 0
        self._iteration_start_s: float | None = None
        self._is_held = False
        self._last_s = job.specification.arrival_s

    def start(self, time_s: float) -> list[Action]:
        """Begin the first iteration, at the arrival or later."""
        if self._iteration_start_s is not None or self.departed:
            raise ValueError(f"job {self.job.name!r} has already started")
        self._advance(time_s)
        return self._next_iteration(time_s)

    def begin_iteration(self, time_s: float) -> list[Action]:
        """Begin the iteration on hold; return what can start now."""
        if not self._is_held:
            raise ValueError(f"job {self.job.name!r} holds no iteration")
        self._advance(time_s)
        self._is_held = False
        return self._begin_tasks(time_s)

    def finish(self, tasks: Sequence[int], time_s: float) -> list[Action]:
        """End tasks that end together; return what can start now (empty: nothing, or the job has departed)."""
        for task in tasks:
            if task not in self._started:
                raise ValueError(f"job {self.job.name!r} is not running task {task}")
        self._advance(time_s)
        ready = []
        for task in tasks:
            self._record(task, time_s)
            for number in self.job.graph.later_tasks[task]:
                self._waits_for[number] -= 1
                if not self._waits_for[number]:
                    ready.append(number)
        self._unfinished -= len(tasks)
        return [self._begin(number, time_s) for number in ready] if self._unfinished else self._end_iteration(time_s)

    def withdraw(self, time_s: float) -> None:
        """End the job now: tasks in progress are cut short and recorded, and the iteration does not count."""
        if self.departed:
            raise ValueError(f"job {self.job.name!r} has already departed")
        self._advance(time_s)
        for task in tuple(self._started):
            self._record(task, time_s)
        self._is_held = False
        self.departed_s = time_s

    def _next_iteration(self, time_s: float) -> list[Action]:
        self._iteration_start_s = time_s
        delay_s = self._delay_s(time_s)
        if delay_s <= 0:
            return self._begin_tasks(time_s)
        self._is_held = True
        return [HoldIteration(time_s + delay_s)]

    def _begin_tasks(self, time_s: float) -> list[Action]:
        tasks = self.job.graph.tasks
        self._unfinished = len(tasks)
        self._waits_for = list(self._num_before)
        return [self._begin(number, time_s) for number, waits_for in enumerate(self._waits_for) if not waits_for]

    def _begin(self, task: int, time_s: float) -> Action:
        self._started[task] = time_s
        beginning = self.job.graph.tasks[task]
        if isinstance(beginning, Computation):
            duration_s = beginning.duration_s * self._stretch(len(self.iterations), task)
            return StartComputation(task, beginning.name, self._downtime.end_s(beginning.hosts, time_s, duration_s))
        return StartTransfer(task, beginning.group, self.job.graph.flows_of(beginning))

    def _end_iteration(self, time_s: float) -> list[Action]:
        assert self._iteration_start_s is not None
        self.iterations.append(Iteration(len(self.iterations), self._iteration_start_s, time_s))
        specification = self.job.specification
        if specification.duration_s is not None:
            over = time_s >= specification.arrival_s + specification.duration_s
        else:
            over = len(self.iterations) == specification.iterations
        if over:
            self.departed_s = time_s
            return []
        return self._next_iteration(time_s)

    def _record(self, task: int, time_s: float) -> None:
        start_s, iteration = self._started.pop(task), len(self.iterations)
        ended = self.job.graph.tasks[task]
        if isinstance(ended, Computation):
            self.computing += [
                ComputeInterval(ended.name, ended.hosts, iteration, *span, share=ended.share)
                for span in self._downtime.computing(ended.hosts, start_s, time_s)
            ]
        else:
            size_bytes = self._sizes_bytes[task]
            self.communicating.append(CommunicationInterval(ended.group, iteration, start_s, time_s, size_bytes))

    def _advance(self, time_s: float) -> None:
        if time_s < self._last_s:
            raise ValueError(f"job {self.job.name!r}: {time_s} s is before {self._last_s} s")
        self._last_s = time_s
