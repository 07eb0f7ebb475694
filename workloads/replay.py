"""Replays a job iteration after iteration: a state machine without clock or I/O, driven by an emulator or simulator."""

from collections.abc import Callable
from dataclasses import dataclass

from workloads.host_pauses import HostPauses
from workloads.jobs import TrainingJob
from workloads.task_graph import Computation, GroupTransfer


@dataclass(frozen=True, slots=True)
class StartComputation:
    """The runner calls ``JobReplay.computation_finished(task, ends_at_s)`` when the time has come."""

    task: int
    name: str
    ends_at_s: float


@dataclass(frozen=True, slots=True)
class StartTransfer:
    """The runner sends these flows of the group and calls ``JobReplay.transfer_finished`` when all have arrived."""

    task: int
    group: str
    flows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HoldIteration:
    """The next iteration is held; the runner calls ``JobReplay.begin_iteration`` when the time has come."""

    until_s: float


_NO_PAUSES = HostPauses()

Action = StartComputation | StartTransfer | HoldIteration


def unstretched(_iteration: int, _task: int) -> float:
    """Every computation takes what its task graph says."""
    return 1.0


def never_held(_now_s: float) -> float:
    """Every iteration begins when it can."""
    return 0.0


@dataclass(frozen=True, slots=True)
class ComputeInterval:
    """GPUs of the job on ``hosts`` computed."""

    name: str
    hosts: tuple[str, ...]
    iteration: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class CommunicationInterval:
    """Flows of a group that were released together were under way."""

    group: str
    iteration: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Iteration:
    """One completed iteration, from the end of the one before it: a hold counts."""

    number: int
    start_s: float
    end_s: float


class JobReplay:
    """A job in time: says what to start, is told what has ended, and keeps the record.

    The job departs after its ``iterations``, or with the iteration in which its ``duration_s`` since arrival ends.
    ``delay_s`` is asked, whenever an iteration could begin, for how many seconds to hold it; ``stretch``, by iteration
    and task, how many times its duration a computation takes. ``pauses``: when its hosts stand still.
    Every method raises ValueError for a call that does not fit the state: an end of something that is not running, or a
    time before the last one.
    """

    def __init__(
        self,
        job: TrainingJob,
        delay_s: Callable[[float], float] = never_held,
        stretch: Callable[[int, int], float] = unstretched,
        pauses: HostPauses = _NO_PAUSES,
    ) -> None:
        self.job = job
        self._pauses = pauses
        self._delay_s = delay_s
        self._stretch = stretch
        self.computing: list[ComputeInterval] = []
        self.communicating: list[CommunicationInterval] = []
        self.iterations: list[Iteration] = []
        self.departed_s: float | None = None
        self._started: dict[int, float] = {}
        self._waits_for: list[int] = []
        self._unfinished = 0
        self._iteration_start_s: float | None = None
        self._is_held = False
        self._last_s = job.specification.arrival_s

    @property
    def departed(self) -> bool:
        return self.departed_s is not None

    def start(self, time_s: float) -> list[Action]:
        """Begin the first iteration, at the arrival or later."""
        if self._iteration_start_s is not None or self.departed:
            raise ValueError(f"job {self.job.name!r} has already started")
        self._advance(time_s)
        return self._next_iteration(time_s)

    def begin_iteration(self, time_s: float) -> list[Action]:
        """The time until which an iteration was held has come; what can start now."""
        if not self._is_held:
            raise ValueError(f"job {self.job.name!r} holds no iteration")
        self._advance(time_s)
        self._is_held = False
        return self._begin_tasks(time_s)

    def computation_finished(self, task: int, time_s: float) -> list[Action]:
        """A computation has ended; what can start now, in the order of the task graph (empty: nothing, or departed)."""
        if task not in self._started or not isinstance(self.job.graph.tasks[task], Computation):
            raise ValueError(f"job {self.job.name!r} is not running computation {task}")
        return self._finish(task, time_s)

    def transfer_finished(self, task: int, time_s: float) -> list[Action]:
        """All flows of a transfer have arrived; what can start now, in the order of the task graph."""
        if task not in self._started or not isinstance(self.job.graph.tasks[task], GroupTransfer):
            raise ValueError(f"job {self.job.name!r} is not sending with task {task}")
        return self._finish(task, time_s)

    def withdraw(self, time_s: float) -> None:
        """The job ends here, or the run does: what is under way is cut and recorded, the iteration does not count."""
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
        self._waits_for = [len(set(task.after)) for task in tasks]
        return [self._begin(number, time_s) for number, waits_for in enumerate(self._waits_for) if not waits_for]

    def _begin(self, task: int, time_s: float) -> Action:
        self._started[task] = time_s
        beginning = self.job.graph.tasks[task]
        if isinstance(beginning, Computation):
            duration_s = beginning.duration_s * self._stretch(len(self.iterations), task)
            return StartComputation(task, beginning.name, self._pauses.end_s(beginning.hosts, time_s, duration_s))
        return StartTransfer(task, beginning.group, self.job.graph.flows_of(beginning))

    def _finish(self, task: int, time_s: float) -> list[Action]:
        self._advance(time_s)
        self._record(task, time_s)
        self._unfinished -= 1
        if not self._unfinished:
            return self._end_iteration(time_s)
        ready = []
        for number, later in enumerate(self.job.graph.tasks):
            if task in later.after:
                self._waits_for[number] -= 1
                if not self._waits_for[number]:
                    ready.append(number)
        return [self._begin(number, time_s) for number in ready]

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
                ComputeInterval(ended.name, ended.hosts, iteration, *span)
                for span in self._pauses.computing(ended.hosts, start_s, time_s)
            ]
        else:
            self.communicating.append(CommunicationInterval(ended.group, iteration, start_s, time_s))

    def _advance(self, time_s: float) -> None:
        if time_s < self._last_s:
            raise ValueError(f"job {self.job.name!r}: {time_s} s is before {self._last_s} s")
        self._last_s = time_s
