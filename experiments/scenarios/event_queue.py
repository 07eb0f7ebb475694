"""The events of a run by virtual time."""

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
    """Computations of a job end together."""

    job: str
    time_ps: int


@dataclass(frozen=True, slots=True)
class HoldEnd:
    """A job has held its next iteration for long enough."""

    job: str


@dataclass(frozen=True, slots=True)
class ControllerUpdate:
    """The controller learns what has happened, or serves a timer of its own."""


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """The host libraries' clock moves on, which renews leases."""


@dataclass(frozen=True, slots=True)
class LoadSampling:
    """The loads of the links are sampled."""


@dataclass(frozen=True, slots=True)
class ProbeRound:
    """Hosts send the probes that are due and process those that have arrived."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An event of the scenario begins."""

    event: ScenarioEvent


@dataclass(frozen=True, slots=True)
class PortReport:
    """The controller learns which ports are up and down now."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The element that an event of the scenario started is in service again."""

    event: ScenarioEvent


JobEvent = Arrival | ComputationEnd | HoldEnd
Event = JobEvent | ControllerUpdate | LeaseRenewal | LoadSampling | ProbeRound | Fault | Recovery | PortReport


PS_PER_S = 1_000_000_000_000
"""A queue counts time in picoseconds."""


class EventQueue:
    """Events by time; those of the same time keep the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Event]] = []
        self._order = count()

    def add(self, time_ps: int, event: Event) -> None:
        """Add an event."""
        heapq.heappush(self._heap, (time_ps, next(self._order), event))

    @property
    def next_ps(self) -> int:
        """The time of the first event; raises IndexError where there is none."""
        return self._heap[0][0]

    def pop_due(self, now_ps: int) -> Event | None:
        """Remove and return the first event if its time has come."""
        if self._heap and self._heap[0][0] <= now_ps:
            return heapq.heappop(self._heap)[2]
        return None
