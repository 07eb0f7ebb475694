"""Stages of flow groups told as groups of their own: what is left of an EchelonFlow where only coflows are known.

The flows of a group that have one ideal finish are a *stage*: a micro-batch's of a pipeline, a layer's all-gather. A
scheduler of coflows can take a whole group for one coflow, or each of its stages; the latter needs no second scheduler,
only a job that tells its groups otherwise. What the job computes and sends, and when, does not change.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from workloads.task_graph import FlowGroupSpec, GroupTransfer, Task, TaskGraph


@dataclass(frozen=True, slots=True)
class Stage:
    """The flows of a group that are due ``offset_s`` after its reference time."""

    group: str
    offset_s: float


def told_by_stages(graph: TaskGraph) -> tuple[TaskGraph, Mapping[str, Stage]]:
    """The graph with a group, all its offsets 0, for every stage; and which stage each of these groups is.

    Raises ValueError, naming the group, for a transfer whose flows are not all due together.
    """
    stages: dict[str, Stage] = {}
    groups: list[FlowGroupSpec] = []
    place: dict[tuple[str, int], tuple[str, int]] = {}
    for group in graph.flow_groups:
        members: defaultdict[float, list[int]] = defaultdict(list)
        for number, flow in enumerate(group.flows):
            members[flow.offset_s].append(number)
        for position, (offset_s, numbers) in enumerate(sorted(members.items())):
            name = f"{group.name} #{position}"
            stages[name] = Stage(group.name, offset_s)
            groups.append(FlowGroupSpec(name, tuple(replace(group.flows[number], offset_s=0.0) for number in numbers)))
            place |= {(group.name, number): (name, index) for index, number in enumerate(numbers)}
    tasks: list[Task] = []
    for task in graph.tasks:
        if isinstance(task, GroupTransfer):
            names, flows = zip(*(place[task.group, number] for number in graph.flows_of(task)), strict=True)
            if len(set(names)) > 1:
                raise ValueError(f"flow group {task.group!r}: flows that are released together are due apart")
            tasks.append(replace(task, group=names[0], flows=flows))
        else:
            tasks.append(task)
    return TaskGraph(tuple(tasks), tuple(groups)), stages
