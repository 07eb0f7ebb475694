"""The tasks of several jobs as arrays, for the compiled loop."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from policies.model.picoseconds import PS_PER_S
from policies.rates.network import FloatArray, IntArray
from policies.task_graph import Computation, TaskGraph

SENDS = -1
"""The duration of a task that sends."""
_NUM_FACTORS = 4_093
"""A prime: jobs meet the factors at other turns in every iteration."""
_MAX_DEVIATIONS = 3.0


@cache
def _stretch(jitter: float) -> FloatArray:
    """Return factors that are normal around 1, cut off at three deviations; a single one where nothing is jittered."""
    if not jitter:
        return np.ones(1)
    drawn = np.random.default_rng(0).normal(size=_NUM_FACTORS)
    return np.asarray(1.0 + jitter * np.clip(drawn, -_MAX_DEVIATIONS, _MAX_DEVIATIONS))


class TaskTable(NamedTuple):
    """The tasks of all jobs, job after job.

    Those of a job are ``first_task[job]`` to ``first_task[job + 1]``. ``duration_ps`` is that of a computation, or
    SENDS. A task waits for ``num_before`` others, and the tasks ``after[first_after[task]:first_after[task + 1]]`` wait
    for it. A computation takes ``stretch`` times as long, a factor that changes from task to task and from iteration to
    iteration.
    """

    first_task: IntArray
    job_of: IntArray
    duration_ps: IntArray
    num_before: IntArray
    first_after: IntArray
    after: IntArray
    stretch: FloatArray

    @classmethod
    def of(cls, graphs: Sequence[TaskGraph], jitter: float = 0.0) -> Self:
        """Return the table of jobs with these graphs; ``jitter`` is the standard deviation of ``stretch``."""
        first_task = np.cumsum([0, *(len(graph.tasks) for graph in graphs)], dtype=np.int64)
        tasks = [task for graph in graphs for task in graph.tasks]
        durations = [
            max(1, round(task.duration_s * PS_PER_S)) if isinstance(task, Computation) else SENDS for task in tasks
        ]
        edges = [
            (first + earlier, first + number)
            for first, graph in zip(first_task.tolist(), graphs, strict=False)
            for number, task in enumerate(graph.tasks)
            for earlier in set(task.after)
        ]
        before, after = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2).T
        return cls(
            first_task=first_task,
            job_of=np.repeat(np.arange(len(graphs)), np.diff(first_task)),
            duration_ps=np.array(durations, dtype=np.int64),
            num_before=np.bincount(after, minlength=len(tasks)).astype(np.int64),
            first_after=np.concatenate(([0], np.cumsum(np.bincount(before, minlength=len(tasks))))).astype(np.int64),
            after=np.ascontiguousarray(after),
            stretch=_stretch(jitter),
        )


class Progress(NamedTuple):
    """Where the jobs are inside their iterations.

    By task: ``waits_for`` so many others; ``ends_ps``, when its computation ends or its last bytes arrive, while that
    is known; ``sending`` so many bundles; ``latest_ps``, the latest arrival of those sent. The tasks whose end is known
    are the first ``counts[0]`` of ``running``; ``counts[1]`` measures the time that was needed. By job: ``unfinished``
    tasks, ``iterations`` completed, and ``begins_ps``, when the first iteration begins while it has not.
    """

    waits_for: IntArray
    ends_ps: IntArray
    sending: IntArray
    latest_ps: IntArray
    running: IntArray
    counts: IntArray
    unfinished: IntArray
    iterations: IntArray
    begins_ps: IntArray

    @classmethod
    def of(cls, tasks: TaskTable, begins_ps: IntArray) -> Self:
        """Return the progress of jobs that begin at these times."""
        by_task = np.zeros((5, len(tasks.duration_ps)), dtype=np.int64)
        by_job = np.zeros((2, len(begins_ps)), dtype=np.int64)
        return cls(
            waits_for=by_task[0],
            ends_ps=by_task[1],
            sending=by_task[2],
            latest_ps=by_task[3],
            running=by_task[4],
            counts=np.zeros(2, dtype=np.int64),
            unfinished=by_job[0],
            iterations=by_job[1],
            begins_ps=begins_ps.copy(),
        )
