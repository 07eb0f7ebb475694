"""Writes task graphs as text, and reads them.

The text is JSON, in which a computation is [duration_s, after] and a transfer [flows, after]. It is written in parts,
since no other thread runs while one is written. So a record has it as text inside of the JSON of a job.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from policies.job import MAX_COMPUTE_S
from policies.task_graph import Computation, Task, TaskGraph, Transfer

_TASKS_AT_ONCE = 1_000
"""Encoding so many takes a millisecond, in which no other thread runs."""

_Position = Annotated[int, Field(ge=0)]
_Task = tuple[Annotated[float, Field(gt=0, le=MAX_COMPUTE_S)] | list[_Position], list[_Position]]


class _GraphBody(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    is_guessed: bool
    tasks: list[_Task]


def graph_text(graph: TaskGraph) -> str:
    """The text of a task graph."""
    parts = (graph.tasks[first : first + _TASKS_AT_ONCE] for first in range(0, len(graph.tasks), _TASKS_AT_ONCE))
    tasks = ",".join(_text([_task_body(task) for task in part])[1:-1] for part in parts)
    return f'{{"is_guessed":{_text(graph.is_guessed)},"tasks":[{tasks}]}}'


def graph_from_text(text: str) -> TaskGraph:
    """Read what ``graph_text`` has written. Raises ValueError for anything else."""
    body = _GraphBody.model_validate_json(text, strict=True)
    return TaskGraph(tuple(_task(*task) for task in body.tasks), body.is_guessed)


def _task_body(task: Task) -> list[Any]:
    return [task.duration_s if isinstance(task, Computation) else list(task.flows), list(task.after)]


def _task(duration_or_flows: float | list[int], after: list[int]) -> Task:
    if isinstance(duration_or_flows, list):
        return Transfer(tuple(duration_or_flows), tuple(after))
    return Computation(duration_or_flows, tuple(after))


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
