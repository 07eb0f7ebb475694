"""What one iteration of a job does: computations and transfers, and which of them wait for which.

A compact form of a job's progress: a group's release and need follow from it, whatever other jobs do. The same graph is
played by ``policies.model.playing_jobs``::

    graph = TaskGraph((Computation(0.1), Transfer(flows=(0, 1), after=(0,)), Computation(0.2, after=(0,))))
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MAX_TASKS = 100_000
"""Of one job; more are refused."""


@dataclass(frozen=True, slots=True)
class Computation:
    """The job computes for ``duration_s`` after the tasks numbered ``after`` have ended."""

    duration_s: float
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """Flows, by their positions in the job, start after the tasks numbered ``after``; it ends with the last of them."""

    flows: tuple[int, ...]
    after: tuple[int, ...] = ()


Task = Computation | Transfer


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """The tasks of one iteration, each behind those that it waits for. The next iteration begins when all have ended.

    ``is_guessed`` marks a graph that does not come from the job, or that the job itself only assumes: nobody knows when
    its groups are needed.

    Raises:
        ValueError: A task waits for itself, for a later one or for one that is not there; a computation takes no time,
            or not a finite one; a transfer sends nothing, or a flow is sent twice; nothing is computed; there are more
            than MAX_TASKS tasks. The message names the task.
    """

    tasks: tuple[Task, ...]
    is_guessed: bool = False

    def __post_init__(self) -> None:
        if len(self.tasks) > MAX_TASKS:
            raise ValueError(f"tasks: a job has room for {MAX_TASKS:,}, this would be {len(self.tasks):,}")
        if not any(isinstance(task, Computation) for task in self.tasks):
            raise ValueError("tasks: an iteration must compute something")
        sent: set[int] = set()
        for number, task in enumerate(self.tasks):
            if any(not 0 <= earlier < number for earlier in task.after):
                raise ValueError(f"tasks[{number}].after: a task waits for earlier ones, not for {task.after}")
            if isinstance(task, Computation):
                if not 0 < task.duration_s < math.inf:
                    raise ValueError(f"tasks[{number}].duration_s: must be positive and finite, not {task.duration_s}")
            elif not task.flows:
                raise ValueError(f"tasks[{number}].flows: must name at least one flow")
            elif len(set(task.flows)) < len(task.flows) or not sent.isdisjoint(task.flows):
                raise ValueError(f"tasks[{number}].flows: a flow is sent once an iteration")
            else:
                sent.update(task.flows)

    @property
    def compute_s(self) -> float:
        """How long an iteration takes if transfers take no time."""
        starts_s = earliest_starts_s(self.tasks)
        return max(start_s + duration_s(task) for start_s, task in zip(starts_s, self.tasks, strict=True))

    @property
    def num_flows(self) -> int:
        """How many flows an iteration sends."""
        return sum(len(task.flows) for task in self.tasks if isinstance(task, Transfer))


def duration_s(task: Task) -> float:
    """Return how long a task takes if transfers take no time."""
    return task.duration_s if isinstance(task, Computation) else 0.0


def earliest_starts_s(tasks: Sequence[Task]) -> list[float]:
    """Return by task when it starts if transfers take no time."""
    starts_s: list[float] = []
    for task in tasks:
        ends_s = (starts_s[before] + duration_s(tasks[before]) for before in task.after)
        starts_s.append(max(ends_s, default=0.0))
    return starts_s


def check_sends(graph: TaskGraph, group_sizes: Sequence[int]) -> None:
    """Check that a graph sends all flows of groups with so many flows each, and a transfer those of one group.

    Raises:
        ValueError: It does not; the message names the task.
    """
    group_of = [number for number, size in enumerate(group_sizes) for _ in range(size)]
    for number, task in enumerate(graph.tasks):
        if isinstance(task, Transfer):
            if not (min(task.flows) >= 0 and max(task.flows) < len(group_of)):
                raise ValueError(
                    f"tasks[{number}].flows: the job has flows 0 to {len(group_of) - 1}, not {max(task.flows)}"
                )
            if len({group_of[flow] for flow in task.flows}) > 1:
                raise ValueError(f"tasks[{number}].flows: they must be of one flow group")
    if unsent := len(group_of) - graph.num_flows:
        raise ValueError(f"tasks: no transfer sends {unsent} of the job's {len(group_of)} flows")
