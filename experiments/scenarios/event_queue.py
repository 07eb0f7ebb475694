"""What a run has to do at which virtual time."""

import heapq
from dataclasses import dataclass
from itertools import count

from workloads.events import ScenarioEvent


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job arrives and starts."""

    job: str


@dataclass(frozen=True, slots=True)
class ComputationEnd:
    """A computation of a job ends."""

    job: str
    task: int


@dataclass(frozen=True, slots=True)
class HoldEnd:
    """The time until which a job holds its next iteration has come."""

    job: str


@dataclass(frozen=True, slots=True)
class ControllerUpdate:
    """The controller is told what has happened, or serves a timer of its own."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """The host libraries' clock is moved on, by which leases are renewed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The loads of the links are sampled."""


@dataclass(frozen=True, slots=True)
class ProbeTurn:
    """Hosts send the probes that are due and take in those that have come."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An event of the scenario happens."""

    event: ScenarioEvent


@dataclass(frozen=True, slots=True)
class PortsHeard:
    """The controller acts on what switches say of their ports now."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What an event of the scenario has started serves again."""

    event: ScenarioEvent


JobEvent = Arrival | ComputationEnd | HoldEnd
Event = JobEvent | ControllerUpdate | Renewal | Sample | ProbeTurn | Fault | Recovery | PortsHeard


PS_PER_S = 1_000_000_000_000
"""Times of a queue are counts of picoseconds."""


class EventQueue:
    """Events by time; those of one time in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Event]] = []
        self._order = count()

    def add(self, time_ps: int, event: Event) -> None:
        """Note an event."""
        heapq.heappush(self._heap, (time_ps, next(self._order), event))

    @property
    def next_ps(self) -> int:
        """Time of the first event. Raises IndexError where there is none."""
        return self._heap[0][0]

    def take_due(self, now_ps: int) -> Event | None:
        """The first event, if its time has come."""
        if self._heap and self._heap[0][0] <= now_ps:
            return heapq.heappop(self._heap)[2]
        return None
