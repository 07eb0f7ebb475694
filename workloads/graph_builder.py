"""Puts a task graph together, task after task."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph

Done = tuple[int, ...]
"""Tasks that must have ended."""


class GraphBuilder:
    """A graph in the making: every task is put down after those it waits for, and named by what it returns."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._groups: defaultdict[str, list[FlowSpec]] = defaultdict(list)

    def compute(self, name: str, hosts: Sequence[str], duration_s: float, after: Done = ()) -> Done:
        """The job's GPUs on these hosts compute."""
        return self._put(Computation(name, tuple(hosts), duration_s, _once(after)))

    def send(self, group: str, flows: Iterable[FlowSpec], after: Done = ()) -> Done:
        """These flows are released, the next of their group; without any, what they would have waited for is it."""
        members = self._groups[group]
        first = len(members)
        members += flows
        if len(members) == first:
            return after
        return self._put(GroupTransfer(group, _once(after), tuple(range(first, len(members)))))

    def graph(self) -> TaskGraph:
        """The graph of all that was put down."""
        groups = (FlowGroupSpec(name, tuple(flows)) for name, flows in self._groups.items() if flows)
        return TaskGraph(tuple(self._tasks), tuple(groups))

    def _put(self, task: Task) -> Done:
        self._tasks.append(task)
        return (len(self._tasks) - 1,)


def _once(after: Done) -> Done:
    return tuple(dict.fromkeys(after))
