"""Transfers under way in a run: which are, how late their flow groups are, and which wait to be sent again."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from emulator.engine.transport import TIMEOUT_PS
from experiments.scenarios.routes import Route
from simulator.fluid import NEVER_PS
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


def next_try_ps(since_ps: int, now_ps: int) -> int:
    """When a sender that has got nothing through since a time tries again, now or later.

    Now, if that is the time: packets are under way for a while, and find what switches are told meanwhile.
    """
    return since_ps - (since_ps - now_ps) // TIMEOUT_PS * TIMEOUT_PS


class RetransmissionTimers:
    """The flows under way that have got nothing through since a time; by number, as their network counts them."""

    def __init__(self) -> None:
        self._since_ps: dict[int, int] = {}
        self._try_ps: dict[int, int] = {}

    def renumber(self, new: Mapping[int, int]) -> None:
        """Flows have other numbers from now on; ``new`` has the old one of each."""
        self._since_ps = {number: self._since_ps[old] for number, old in new.items() if old in self._since_ps}
        self._try_ps = {number: self._try_ps[old] for number, old in new.items() if old in self._try_ps}

    @property
    def waiting(self) -> Set[int]:
        """Those that wait."""
        return self._since_ps.keys()

    @property
    def next_try_ps(self) -> int:
        """When the next of them tries again on a route that is there; NEVER_PS where none will."""
        return min(self._try_ps.values(), default=NEVER_PS)

    def take_trying(self, now_ps: int) -> list[int]:
        """Take out those that try again now."""
        trying = [number for number, try_ps in self._try_ps.items() if try_ps <= now_ps]
        for number in trying:
            del self._since_ps[number], self._try_ps[number]
        return trying

    def update(self, routes: Mapping[int, Route], now_ps: int) -> list[int]:
        """Note which flows get nothing through on these routes; returns those that have begun to wait."""
        stalled = []
        for number, route in routes.items():
            if route.is_lost:
                self._try_ps.pop(number, None)
                if number not in self._since_ps:
                    self._since_ps[number] = now_ps
                    stalled.append(number)
            elif number in self._since_ps:
                self._try_ps[number] = next_try_ps(self._since_ps[number], now_ps)
        return stalled
