"""Task graphs: what one iteration of a job computes and sends, and the order of dependence."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Done = tuple[int, ...]
"""Numbers of tasks that must have ended."""


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """Bytes that one iteration sends from a NIC to a NIC.

    ``offset_s`` is the ideal finish relative to the group's reference time.
    """

    source_host: str
    source_nic: int
    destination_host: str
    destination_nic: int
    size_bytes: float
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class FlowGroupSpec:
    """Flows whose ideal finish times an arrangement relates; at least one."""

    name: str
    flows: tuple[FlowSpec, ...]


@dataclass(frozen=True, slots=True)
class Computation:
    """The job's GPUs on ``hosts`` compute for ``duration_s`` after the tasks numbered ``after`` have ended.

    ``share`` is how much of these GPUs is busy.
    """

    name: str
    hosts: tuple[str, ...]
    duration_s: float
    after: tuple[int, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class GroupTransfer:
    """Flows of a group start after the tasks numbered ``after``; the transfer ends with the last of them.

    ``flows`` are positions in the group (None: all). A group whose flows start at different times has several
    transfers.
    """

    group: str
    after: tuple[int, ...] = ()
    flows: tuple[int, ...] | None = None


Task = Computation | GroupTransfer


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of one iteration, each behind those it waits for, and the flow groups that they send.

    Raises ValueError for a task that waits for itself or a later one, an empty graph, a computation that takes no time,
    an empty group, groups of the same name, or a flow that is not sent by exactly one transfer.
    """

    tasks: tuple[Task, ...]
    flow_groups: tuple[FlowGroupSpec, ...] = ()

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("a task graph needs at least one task")
        for number, task in enumerate(self.tasks):
            if any(not 0 <= earlier < number for earlier in task.after):
                raise ValueError(f"task {number} can only wait for earlier ones, not for {task.after}")
            if isinstance(task, Computation) and task.duration_s <= 0:
                raise ValueError(f"computation {task.name!r} must take time, not {task.duration_s} s")
        unsent = {group.name: set(range(len(group.flows))) for group in self.flow_groups}
        if len(unsent) < len(self.flow_groups):
            raise ValueError(
                f"flow groups {sorted(group.name for group in self.flow_groups)} must have different names"
            )
        for group in self.flow_groups:
            if not group.flows:
                raise ValueError(f"flow group {group.name!r} has no flows")
        for task in self.tasks:
            if isinstance(task, GroupTransfer):
                flows = self.flows_of(task)
                if not (flows and len(set(flows)) == len(flows) and unsent[task.group].issuperset(flows)):
                    raise ValueError(f"flow group {task.group!r} cannot send its flows {list(flows)} once, or again")
                unsent[task.group].difference_update(flows)
        for name, left in unsent.items():
            if left:
                raise ValueError(f"flow group {name!r}: no transfer sends its flows {sorted(left)}")

    def flows_of(self, transfer: GroupTransfer) -> tuple[int, ...]:
        """Return the positions of the flows that a transfer sends. Raises ValueError for an unknown group."""
        if transfer.group not in self._flows:
            raise ValueError(f"a transfer sends flow group {transfer.group!r}, which is not there")
        return tuple(range(len(self._flows[transfer.group]))) if transfer.flows is None else transfer.flows

    def size_bytes(self, transfer: GroupTransfer) -> float:
        """Return the bytes that a transfer sends. Raises ValueError for an unknown group."""
        return sum(self._flows[transfer.group][number].size_bytes for number in self.flows_of(transfer))

    @cached_property
    def later_tasks(self) -> tuple[tuple[int, ...], ...]:
        """By task, those that wait for it, ascending."""
        later: list[list[int]] = [[] for _ in self.tasks]
        for number, task in enumerate(self.tasks):
            for earlier in set(task.after):
                later[earlier].append(number)
        return tuple(map(tuple, later))

    @cached_property
    def _flows(self) -> Mapping[str, tuple[FlowSpec, ...]]:
        return {group.name: group.flows for group in self.flow_groups}

    @property
    def computing_host_seconds(self) -> float:
        """Seconds of computation per iteration, summed over hosts."""
        return sum(
            len(task.hosts) * task.share * task.duration_s for task in self.tasks if isinstance(task, Computation)
        )


class GraphBuilder:
    """Builds a task graph, task by task. Each method returns the new task, for later tasks to wait for.

    builder = GraphBuilder()
    forward = builder.compute("forward", hosts, 0.1)
    gather = builder.send("all-gather", flows)
    builder.compute("backward", hosts, 0.2, after=forward + gather)
    graph = builder.graph()
    """

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._groups: defaultdict[str, list[FlowSpec]] = defaultdict(list)

    def compute(self, name: str, hosts: Sequence[str], duration_s: float, after: Done = (), share: float = 1.0) -> Done:
        """Add a computation of the job's GPUs on these hosts, or of a share of them."""
        return self._put(Computation(name, tuple(hosts), duration_s, _once(after), share))

    def send(self, group: str, flows: Iterable[FlowSpec], after: Done = ()) -> Done:
        """Add a transfer of further flows of a group. Without flows nothing is added, and ``after`` is returned."""
        members = self._groups[group]
        first = len(members)
        members += flows
        if len(members) == first:
            return after
        return self._put(GroupTransfer(group, _once(after), tuple(range(first, len(members)))))

    def graph(self) -> TaskGraph:
        """Return the graph."""
        groups = (FlowGroupSpec(name, tuple(flows)) for name, flows in self._groups.items() if flows)
        return TaskGraph(tuple(self._tasks), tuple(groups))

    def _put(self, task: Task) -> Done:
        self._tasks.append(task)
        return (len(self._tasks) - 1,)


def _once(after: Done) -> Done:
    return tuple(dict.fromkeys(after))


def compute_and_send(
    group: str, compute_s: float, comm_start: float, hosts: tuple[str, ...], flows: tuple[FlowSpec, ...]
) -> TaskGraph:
    """Compute up to the fraction ``comm_start``; then the rest of the computation and the group in parallel.

    Without flows there is one computation and no group.
    """
    before_s = compute_s * (comm_start if flows else 1.0)
    tasks: list[Task] = []
    if before_s > 0:
        tasks.append(Computation("before communication", hosts, before_s))
    after = tuple(range(len(tasks)))
    if before_s < compute_s:
        tasks.append(Computation("during communication", hosts, compute_s - before_s, after))
    if not flows:
        return TaskGraph(tuple(tasks))
    tasks.append(GroupTransfer(group, after))
    return TaskGraph(tuple(tasks), (FlowGroupSpec(group, flows),))
