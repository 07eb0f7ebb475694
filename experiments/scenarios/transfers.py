"""The transfers under way in a run: their flows, the tardiness of their groups, and retransmission timers."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from emulator.engine.transport import TIMEOUT_PS
from experiments.scenarios.connections import GroupKey
from experiments.scenarios.routes import Route
from experiments.scenarios.timeline import UNKNOWN, Timeline
from policies.model.picoseconds import NEVER_PS
from workloads.replay import StartTransfer
from workloads.task_graph import FlowSpec


@dataclass(frozen=True, slots=True)
class TransferEnd:
    """The end of a transfer, all of whose flows have arrived; ``task`` is its number in the job's task graph.

    ``tardiness_s`` is set where this was the last transfer of the group's instance: the largest difference of a flow's
    finish time and its ideal one.
    """

    job: str
    task: int
    group: str
    tardiness_s: float | None


@dataclass(frozen=True, slots=True)
class IterationEnd:
    """The end of an iteration that took so long, as the program of a job has reported it ``ago_s`` later."""

    job: str
    took_s: float
    timeline: Timeline = UNKNOWN
    ago_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job's own programs: they are done, or ``failure`` says what has gone wrong."""

    job: str
    failure: str | None = None


NetworkEvent = TransferEnd | IterationEnd | JobEnd


@dataclass(slots=True)
class Instance:
    """One execution of a flow group, from the start of its head flow.

    ``remaining`` counts the flows that have not arrived, ``tardiness_s`` is the largest of those that have, and
    ``released`` are the transfers that have started.
    """

    started_s: float
    remaining: int
    tardiness_s: float = -math.inf
    released: set[int] = field(default_factory=set)


class Instances:
    """Tracks the flow groups under way; ``specifications`` are the flows of every group."""

    def __init__(self, specifications: Mapping[GroupKey, Sequence[FlowSpec]]) -> None:
        self._specifications = specifications
        self._groups: dict[GroupKey, Instance] = {}
        self._task_of: dict[tuple[GroupKey, int], int] = {}
        self._left: dict[tuple[str, int], int] = {}

    def start(self, job: str, transfers: Iterable[StartTransfer], now_s: float) -> None:
        """Start transfers, and an instance of a group with the first of them."""
        for transfer in transfers:
            key = job, transfer.group
            if key not in self._groups:
                self._groups[key] = Instance(now_s, len(self._specifications[key]))
            self._groups[key].released.add(transfer.task)
            self._left[job, transfer.task] = len(transfer.flows)
            if (key, transfer.flows[0]) not in self._task_of:  # every iteration sends a flow in the same task
                self._task_of |= dict.fromkeys(((key, number) for number in transfer.flows), transfer.task)

    def arrive(self, key: GroupKey, number: int, time_s: float) -> TransferEnd | None:
        """Record the arrival of a flow; return the end of its transfer where this was the last flow."""
        return self.arrive_together(
            key, self._task_of[key, number], 1, self._specifications[key][number].offset_s, time_s
        )

    def arrive_together(
        self, key: GroupKey, task: int, num_flows: int, offset_s: float, time_s: float
    ) -> TransferEnd | None:
        """Record the arrival of some flows of a task, the first of which was due ``offset_s`` after the group's start.

        Returns:
            The end of their transfer, where these were its last flows.
        """
        instance = self._groups[key]
        instance.tardiness_s = max(instance.tardiness_s, time_s - instance.started_s - offset_s)
        instance.remaining -= num_flows
        self._left[key[0], task] -= num_flows
        if not instance.remaining:
            del self._groups[key]
        if self._left[key[0], task]:
            return None
        return TransferEnd(*(key[0], task, key[1]), None if instance.remaining else instance.tardiness_s)

    @property
    def open(self) -> Mapping[GroupKey, Instance]:
        """The groups under way, in the order in which their head flows started."""
        return self._groups


def next_try_ps(since_ps: int, now_ps: int) -> int:
    """Return when a sender whose packets have been lost since a time next retransmits, now or later.

    Now counts: packets take a while to travel, and meet the rules that switches get meanwhile.
    """
    return since_ps - (since_ps - now_ps) // TIMEOUT_PS * TIMEOUT_PS


class RetransmissionTimers:
    """The retransmission timers of flows whose packets are lost, by the network's flow numbers."""

    def __init__(self) -> None:
        self._lost_since_ps: dict[int, int] = {}
        self._try_ps: dict[int, int] = {}

    def renumber(self, new: Mapping[int, int]) -> None:
        """Change the numbers of flows; ``new`` maps each new number to the old one."""
        self._lost_since_ps = {
            number: self._lost_since_ps[old] for number, old in new.items() if old in self._lost_since_ps
        }
        self._try_ps = {number: self._try_ps[old] for number, old in new.items() if old in self._try_ps}

    @property
    def waiting(self) -> Set[int]:
        """The flows that wait to retransmit."""
        return self._lost_since_ps.keys()

    @property
    def next_try_ps(self) -> int:
        """When a flow next retransmits on a route that works; NEVER_PS where none will."""
        return min(self._try_ps.values(), default=NEVER_PS)

    def pop_due(self, now_ps: int) -> list[int]:
        """Remove and return the flows that retransmit now."""
        due = [number for number, try_ps in self._try_ps.items() if try_ps <= now_ps]
        for number in due:
            del self._lost_since_ps[number], self._try_ps[number]
        return due

    def update(self, routes: Mapping[int, Route], now_ps: int) -> list[int]:
        """Update the timers for the routes of flows; return the flows that have begun to wait."""
        stalled = []
        for number, route in routes.items():
            if route.is_lost:
                self._try_ps.pop(number, None)
                if number not in self._lost_since_ps:
                    self._lost_since_ps[number] = now_ps
                    stalled.append(number)
            elif number in self._lost_since_ps:
                self._try_ps[number] = next_try_ps(self._lost_since_ps[number], now_ps)
        return stalled
