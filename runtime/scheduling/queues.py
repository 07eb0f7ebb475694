"""Gangs that wait for the same devices, ranked."""

from enum import Enum, auto
from heapq import heappop, heappush, heapreplace

from runtime.scheduling.devices import DeviceSet
from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.policy import Policy

Rank = tuple[float, float, int]
"""Clock of the client, urgency, number."""


class GangState(Enum):
    """Where a gang is on its way."""

    HELD_BACK = auto()
    """A gang whose result it takes has not been granted."""
    WAITING = auto()
    """It waits in its queue."""
    GRANTED = auto()
    DROPPED = auto()


class Gang:
    """A request on its way through the scheduler of an island."""

    __slots__ = ("cost_ns", "granted_s", "queue", "request", "state", "urgency")

    def __init__(self, request: GangRequest, queue: "GangQueue", urgency: float) -> None:
        self.request = request
        self.queue = queue
        self.urgency = urgency
        self.cost_ns = max(1, round(request.cost_s * 1e9))
        self.granted_s = 0.0
        self.state = GangState.HELD_BACK


class _Lane:
    """The gangs of one client in a queue, and the entry that stands for the first of them among the lanes."""

    __slots__ = ("client", "entry", "gangs")

    def __init__(self, client: str) -> None:
        self.client = client
        self.gangs: list[tuple[float, int, Gang]] = []
        self.entry: tuple[Rank, _Lane] | None = None


class GangQueue:
    """The gangs that wait for one set of devices.

    Clients have a lane each, ordered by urgency and number. The lanes stand in a heap by the rank of their first gang.
    Clocks only move on, so a rank that is out of date is too small: it comes up early, and is put right then.

    Attributes:
        devices: The devices.
        neighbours: The other queues that have a device in common with this one.
        marked: The rank at which the scheduler is going to look at the queue; None where nothing has changed.
        num_gangs: The gangs that have not completed: held back, waiting or granted.
    """

    __slots__ = ("_entries", "_lanes", "_policy", "devices", "marked", "neighbours", "num_gangs")

    def __init__(self, devices: DeviceSet, policy: Policy) -> None:
        self.devices = devices
        self.neighbours: list[GangQueue] = []
        self.marked: Rank | None = None
        self.num_gangs = 0
        self._policy = policy
        self._lanes: dict[str, _Lane] = {}
        self._entries: list[tuple[Rank, _Lane]] = []

    def push(self, gang: Gang) -> None:
        """Add a gang that may be granted."""
        client = gang.request.client
        lane = self._lanes.get(client)
        if lane is None:
            lane = self._lanes[client] = _Lane(client)
        gang.state = GangState.WAITING
        heappush(lane.gangs, (gang.urgency, gang.request.number, gang))
        if lane.gangs[0][2] is gang:
            self._enter(lane)

    def first(self) -> tuple[Rank, Gang] | None:
        """Return the gang with the smallest rank, and the rank; None where none waits."""
        entries = self._entries
        while entries:
            entry = entries[0]
            rank, lane = entry
            if lane.entry is not entry:
                heappop(entries)
                continue
            urgency, number, gang = lane.gangs[0]
            if gang.state is GangState.DROPPED:
                heappop(entries)
                self._advance(lane)
                continue
            clock = self._policy.clock(lane.client)
            if clock == rank[0]:
                return rank, gang
            lane.entry = ((clock, urgency, number), lane)
            heapreplace(entries, lane.entry)
        return None

    def pop(self) -> None:
        """Take the gang that ``first`` returned away."""
        _, lane = heappop(self._entries)
        self._advance(lane)

    def _advance(self, lane: _Lane) -> None:
        """Drop the first gang of a lane, whose entry is off the heap."""
        heappop(lane.gangs)
        while lane.gangs and lane.gangs[0][2].state is GangState.DROPPED:
            heappop(lane.gangs)
        if lane.gangs:
            self._enter(lane)
        else:
            lane.entry = None
            del self._lanes[lane.client]

    def _enter(self, lane: _Lane) -> None:
        urgency, number, _ = lane.gangs[0]
        lane.entry = ((self._policy.clock(lane.client), urgency, number), lane)
        heappush(self._entries, lane.entry)
