"""What a job tells of its task graph where it is wrong about how much of its computation communication overlaps."""

import math
from collections.abc import Sequence
from dataclasses import replace

from workloads.arrangement import ZeroCommunicationRun
from workloads.task_graph import Computation, Task, TaskGraph

_ROUNDING = 1e-12
_LEAST_COMM_START = 1e-6
"""Of a graph with computations before its first transfer: each of them takes some time."""


def reported_tasks(graph: TaskGraph, comm_start: float, told: float) -> tuple[Task, ...]:
    """Return the tasks of a graph as a job tells them that takes its ``comm_start`` for ``told``.

    Without communication time, its first transfer starts after the fraction ``comm_start`` of the iteration. What is
    computed before that moment is longer or shorter by one factor, and what is computed after it by another one, so
    that the first transfer starts after the fraction ``told`` and the iteration takes as long as before. Where nothing
    is computed before the first transfer, all tasks wait for a computation that is not there in truth.
    """
    if math.isclose(told, comm_start, abs_tol=_ROUNDING):
        return graph.tasks
    run = ZeroCommunicationRun.of(graph)
    if comm_start == 0:
        first = Computation("before communication", _hosts(graph.tasks), told * run.duration_s)
        return (first, *(_behind_first(_scaled(task, 1 - told)) for task in graph.tasks))
    told = max(told, _LEAST_COMM_START)
    first_s = comm_start * run.duration_s
    tasks = []
    for task, start_s in zip(graph.tasks, run.start_s, strict=True):
        if isinstance(task, Computation):
            before_s = min(task.duration_s, max(first_s - start_s, 0.0))
            after_s = task.duration_s - before_s
            told_s = before_s * told / comm_start + (after_s * (1 - told) / (1 - comm_start) if after_s else 0.0)
            task = replace(task, duration_s=told_s)
        tasks.append(task)
    return tuple(tasks)


def _hosts(tasks: Sequence[Task]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(host for task in tasks if isinstance(task, Computation) for host in task.hosts))


def _scaled(task: Task, factor: float) -> Task:
    return replace(task, duration_s=task.duration_s * factor) if isinstance(task, Computation) else task


def _behind_first(task: Task) -> Task:
    return replace(task, after=tuple(number + 1 for number in task.after) or (0,))
