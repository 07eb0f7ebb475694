"""Arrangements by one general rule (EchelonFlow, section 3; hostlib's profile of consumption times).

Run an iteration with communication that takes no time. The computation that needs a flow then starts at its
consumption time C, and the flow's ideal finish is ``r + (C - C_head)``: as long after the group's reference time r, the
start of its head flow, as its consumer starts after the head flow's. Equal consumption times make a coflow.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

from workloads.task_graph import Computation, GroupTransfer, TaskGraph


@dataclass(frozen=True, slots=True)
class ZeroCommunicationRun:
    """One iteration of a task graph, transfers taking no time.

    By task: ``start_s`` and, of a transfer, when the first computation that needs it starts; at the end of the
    iteration where none does.
    """

    start_s: tuple[float, ...]
    consumption_s: tuple[float, ...]
    duration_s: float

    @classmethod
    def of(cls, graph: TaskGraph) -> "ZeroCommunicationRun":
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
    """The graph with the ideal finish of every flow relative to its group's reference time."""
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
