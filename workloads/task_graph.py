"""A task graph: what one iteration of a job computes and sends, and what waits for what."""

from dataclasses import dataclass


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
    """The job's GPUs on ``hosts`` compute for ``duration_s`` once the tasks numbered ``after`` have ended."""

    name: str
    hosts: tuple[str, ...]
    duration_s: float
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupTransfer:
    """Flows of a group start once the tasks numbered ``after`` have ended; the transfer ends with the last of them.

    ``flows`` are positions in the group (None: all its flows); a group whose flows are released one after the other has
    a transfer for each release.
    """

    group: str
    after: tuple[int, ...] = ()
    flows: tuple[int, ...] | None = None


Task = Computation | GroupTransfer


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Tasks of one iteration in an order in which each stands behind those it waits for, and the groups they send.

    Raises ValueError for a task that waits for itself or a later one, an empty graph, a computation that takes no time,
    an empty group, groups of one name, or a flow that not exactly one transfer sends.
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
        """Positions of the flows that a transfer sends. Raises ValueError for a group that is not there."""
        for group in self.flow_groups:
            if group.name == transfer.group:
                return tuple(range(len(group.flows))) if transfer.flows is None else transfer.flows
        raise ValueError(f"a transfer sends flow group {transfer.group!r}, which is not there")

    @property
    def computing_host_seconds(self) -> float:
        """Seconds of computation per iteration, summed over hosts."""
        return sum(len(task.hosts) * task.duration_s for task in self.tasks if isinstance(task, Computation))
