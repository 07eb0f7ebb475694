"""Which transfers and flow groups of a run are under way, and how late the groups are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workloads.replay import StartTransfer
from workloads.task_graph import FlowSpec

GroupKey = tuple[str, str]
"""Job and flow group."""


@dataclass(frozen=True, slots=True)
class TransferEnd:
    """All flows of a transfer have arrived; ``task`` is its number in the job's task graph.

    ``tardiness_s`` is that of the group's instance where this was the last of its transfers: the largest of its flows'
    finish times minus their ideal ones.
    """

    job: str
    task: int
    group: str
    tardiness_s: float | None


@dataclass(slots=True)
class _Transfer:
    """Flows that were released together."""

    task: int
    remaining: int


@dataclass(slots=True)
class Instance:
    """A group that is under way, since its head flow was.

    ``remaining`` flows have not arrived, ``tardiness_s`` is that of those which have, ``released`` are the transfers
    that have started.
    """

    started_s: float
    remaining: int
    tardiness_s: float = -math.inf
    released: set[int] = field(default_factory=set)


class Instances:
    """Counts flows off; ``specifications`` are the flows of every group."""

    def __init__(self, specifications: Mapping[GroupKey, Sequence[FlowSpec]]) -> None:
        self._specifications = specifications
        self._groups: dict[GroupKey, Instance] = {}
        self._transfers: dict[tuple[GroupKey, int], _Transfer] = {}

    def start(self, job: str, transfer: StartTransfer, now_s: float) -> None:
        """A transfer starts, and its group's instance where it is the first."""
        key = job, transfer.group
        if key not in self._groups:
            self._groups[key] = Instance(now_s, len(self._specifications[key]))
        self._groups[key].released.add(transfer.task)
        under_way = _Transfer(transfer.task, len(transfer.flows))
        for number in transfer.flows:
            self._transfers[key, number] = under_way

    def arrive(self, key: GroupKey, number: int, time_s: float) -> TransferEnd | None:
        """A flow of a group has arrived; returns its transfer where this was the last one of that."""
        instance, transfer = self._groups[key], self._transfers.pop((key, number))
        tardiness_s = time_s - instance.started_s - self._specifications[key][number].offset_s
        instance.tardiness_s = max(instance.tardiness_s, tardiness_s)
        instance.remaining -= 1
        transfer.remaining -= 1
        if not instance.remaining:
            del self._groups[key]
        if transfer.remaining:
            return None
        return TransferEnd(*(key[0], transfer.task, key[1]), None if instance.remaining else instance.tardiness_s)

    @property
    def open(self) -> Mapping[GroupKey, Instance]:
        """The groups that are under way, in the order in which their head flows started."""
        return self._groups
