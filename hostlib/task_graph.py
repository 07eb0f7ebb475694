"""What one iteration of a job does: computations and transfers, and which of them wait for which.

A job that tells it lets a policy know when each transfer may start and how long computation can go on without it::

    TaskGraph(
        (
            Computation(0.2),                          # task 0: forward, and backward of the last layers
            Transfer("late gradients", after=(0,)),    # task 1
            Computation(0.1, after=(0,)),              # task 2: backward of the first layers, meanwhile
            Transfer("early gradients", after=(2,)),   # task 3
        )
    )

Like all that a job reports, it is checked when it is made.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hostlib import checks
from hostlib.checks import MAX_32
from hostlib.types import FlowGroup

MAX_TASKS = 100_000
"""Of one job; controllers refuse more."""

_ALL = -1

_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Computation:
    """The job's GPUs compute for ``duration_s`` after the tasks at the positions ``after`` have ended."""

    duration_s: float
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if type(self.duration_s) is not float or not 0.0 < self.duration_s < math.inf:
            _set(self, "duration_s", checks.number("duration_s", self.duration_s))
            if self.duration_s == 0:
                raise ValueError("duration_s: must be above 0")
        _set(self, "after", _positions("after", self.after))


@dataclass(frozen=True, slots=True)
class Transfer:
    """Flows of one group start after the tasks at the positions ``after``; it ends with the last of them.

    ``flows`` are positions in the group; none: all of its flows.
    """

    flow_group: str
    flows: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        checks.name("flow_group", self.flow_group)
        _set(self, "flows", _positions("flows", self.flows))
        _set(self, "after", _positions("after", self.after))
        if len(set(self.flows)) < len(self.flows):
            raise ValueError("flows: a flow is named twice")


Task = Computation | Transfer


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """The tasks of one iteration, each behind those that it waits for. The next iteration begins when all have ended.

    It sends every flow of all the job's groups once. ``is_guessed`` marks one that the job only assumes: policies then
    do not rely on when its groups are needed.

    Raises ValueError, naming the task, for one that waits for itself or a later one and for a flow that is sent twice;
    also where nothing is computed, or there are more than 100,000 tasks.
    """

    tasks: tuple[Task, ...]
    is_guessed: bool = False

    def __post_init__(self) -> None:
        _set(self, "tasks", _tasks(self.tasks))
        checks.instance("is_guessed", self.is_guessed, bool)
        if len(self.tasks) > MAX_TASKS:
            raise ValueError(f"tasks: a job has room for {MAX_TASKS:,}, not for {len(self.tasks):,}")
        if not any(isinstance(task, Computation) for task in self.tasks):
            raise ValueError("tasks: expected at least one computation")
        sent: dict[str, set[int]] = {}
        for number, task in enumerate(self.tasks):
            if task.after and max(task.after) >= number:
                raise ValueError(f"tasks[{number}].after: must name earlier tasks, not {max(task.after)}")
            if isinstance(task, Transfer):
                _send(task, sent, f"tasks[{number}].flows")


def check_sends(graph: TaskGraph, flow_groups: Sequence[FlowGroup]) -> None:
    """Raise ValueError, naming the task, where a graph does not send every flow of these groups once.

    Other groups that it names may be there as well: another process of the job may have registered them.
    """
    unsent = {group.name: set(range(len(group.flows))) for group in flow_groups}
    for number, task in enumerate(graph.tasks):
        if isinstance(task, Transfer) and task.flow_group in unsent:
            left = unsent[task.flow_group]
            if not left.issuperset(task.flows):
                raise ValueError(
                    f"task_graph.tasks[{number}].flows: flow group {task.flow_group!r} has no flow {max(task.flows)}"
                )
            left.difference_update(task.flows or tuple(left))
    for name, left in unsent.items():
        if left:
            raise ValueError(f"task_graph.tasks: no transfer sends flow {min(left)} of flow group {name!r}")


def _send(transfer: Transfer, sent: dict[str, set[int]], field: str) -> None:
    of_group = sent.setdefault(transfer.flow_group, set())
    if _ALL in of_group or (of_group and not transfer.flows) or not of_group.isdisjoint(transfer.flows):
        raise ValueError(f"{field}: flows of flow group {transfer.flow_group!r} are sent a second time")
    of_group.update(transfer.flows or (_ALL,))


def _tasks(values: object) -> tuple[Task, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"tasks: expected a tuple, each item a Computation or Transfer, got {checks.shown(values)}")
    tasks = tuple(values)
    for number, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise ValueError(f"tasks[{number}]: expected a Computation or Transfer, got {checks.shown(task)}")
    return tasks


def _positions(field: str, values: object) -> tuple[int, ...]:
    """Check positions, of tasks or flows."""
    if type(values) is tuple and all(type(value) is int and 0 <= value <= MAX_32 for value in values):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{field}: expected a tuple, each item an integer, got {checks.shown(values)}")
    return tuple(checks.integer(f"{field}[{number}]", value, 0, MAX_32) for number, value in enumerate(values))
