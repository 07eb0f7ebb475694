"""Arrangements: the ideal finish of every flow, by one general rule (EchelonFlow, section 3).

Run an iteration with communication that takes no time. The computation that needs a flow then starts at the flow's
consumption time C, and its ideal finish is ``r + (C - C_head)``, where r is the group's reference time (the start of
its head flow). Equal consumption times make a coflow. ``hostlib`` computes arrangements from profiles by the same rule.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from workloads.task_graph import Computation, FlowGroupSpec, GroupTransfer, Task, TaskGraph


@dataclass(frozen=True, slots=True)
class ZeroCommunicationRun:
    """One iteration of a task graph in which transfers take no time.

    For each task: ``start_s`` and, for transfers, ``consumption_s``, when the first computation that needs it starts.
    If no computation needs it, that is the end of the iteration.
    """

    start_s: tuple[float, ...]
    consumption_s: tuple[float, ...]
    duration_s: float

    @classmethod
    def of(cls, graph: TaskGraph) -> "ZeroCommunicationRun":
        """Run one iteration."""
        starts: list[float] = []
        ends: list[float] = []
        for task in graph.tasks:
            starts.append(max((ends[earlier] for earlier in task.after), default=0.0))
            ends.append(starts[-1] + (task.duration_s if isinstance(task, Computation) else 0.0))
        duration_s = max(ends)
        needed = [duration_s] * len(graph.tasks)
        for number in reversed(range(len(graph.tasks))):
            task = graph.tasks[number]
            needed_here = starts[number] if isinstance(task, Computation) else needed[number]
            for earlier in task.after:
                needed[earlier] = min(needed[earlier], needed_here)
        return cls(tuple(starts), tuple(needed), duration_s)


def arranged(graph: TaskGraph) -> TaskGraph:
    """Return the graph with the offset of every flow from its group's reference time."""
    run = ZeroCommunicationRun.of(graph)
    needed: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for number, task in enumerate(graph.tasks):
        if isinstance(task, GroupTransfer):
            needed[task.group] |= dict.fromkeys(graph.flows_of(task), run.consumption_s[number])
    groups = []
    for group in graph.flow_groups:
        head_s = min(needed[group.name].values())
        flows = (replace(flow, offset_s=needed[group.name][number] - head_s) for number, flow in enumerate(group.flows))
        groups.append(replace(group, flows=tuple(flows)))
    return replace(graph, flow_groups=tuple(groups))


@dataclass(frozen=True, slots=True)
class Stage:
    """The flows of a group with one ideal finish, ``offset_s`` after its reference time, such as one micro-batch."""

    group: str
    offset_s: float


def split_by_stage(graph: TaskGraph) -> tuple[TaskGraph, Mapping[str, Stage]]:
    """Make every stage of a group a flow group of its own, with all offsets 0, and return the stage of each new group.

    A coflow scheduler can then schedule the stages of an EchelonFlow as coflows. What the job computes and sends, and
    when, does not change. Raises ValueError for a transfer whose flows are not all due together.
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
                raise ValueError(f"flow group {task.group!r}: flows of one transfer have different ideal finishes")
            tasks.append(replace(task, group=names[0], flows=flows))
        else:
            tasks.append(task)
    return TaskGraph(tuple(tasks), tuple(groups)), stages
