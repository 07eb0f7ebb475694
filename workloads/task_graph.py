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
    """The flows of a group start once the tasks numbered ``after`` have ended; it ends with the last of them."""

    group: str
    after: tuple[int, ...] = ()


Task = Computation | GroupTransfer


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Tasks of one iteration in an order in which each stands behind those it waits for, and the groups they send.

    Raises ValueError for a task that waits for itself or a later one, an empty graph, a computation that takes no time,
    an empty group, or groups and transfers that do not match one to one.
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
        for group in self.flow_groups:
            if not group.flows:
                raise ValueError(f"flow group {group.name!r} has no flows")
        transferred = sorted(task.group for task in self.tasks if isinstance(task, GroupTransfer))
        if transferred != sorted({group.name for group in self.flow_groups}) or len(transferred) != len(
            self.flow_groups
        ):
            raise ValueError(f"transfers {transferred} must name each flow group exactly once")

    @property
    def computing_host_seconds(self) -> float:
        """Seconds of computation per iteration, summed over hosts."""
        return sum(len(task.hosts) * task.duration_s for task in self.tasks if isinstance(task, Computation))
