"""The scheduler of an island: it grants gangs in one order that all devices follow (Pathways, section 4.4)."""

from collections.abc import Collection
from heapq import heappop, heappush

from runtime.scheduling.devices import Backlog, device_set
from runtime.scheduling.errors import SchedulingError, UnknownGangError
from runtime.scheduling.gangs import GangRequest, Grant
from runtime.scheduling.policy import Policy
from runtime.scheduling.precedence import Precedence
from runtime.scheduling.queues import Gang, GangQueue, GangState, Rank

DEFAULT_LOOK_AHEAD_S = 0.01
_KEPT_QUEUES = 64


class IslandScheduler:
    """Grants the gangs of all clients on one island.

    Every device runs the gangs that it was granted in the order of the grants. Two gangs that share devices so meet in
    the same order on all of them, and collectives that block cannot wait for each other.

    A gang is granted when all of its devices have less than the look-ahead outstanding, and no gang of smaller rank
    waits for one of them. A gang that waits so holds its devices: a large one is not passed by small ones for ever.
    Where a gang takes longer than the look-ahead, but no more than ten times as long, another one is granted behind it:
    a device that waited for its grant would idle after each.

    Args:
        policy: Ranks gangs; its accounts belong to this scheduler alone.
        look_ahead_s: How much granted work a device may have outstanding and still be granted more. The larger it is,
            the less a device idles between a completion and the next grant, and the later shares and needs act.
        precedence: Shared by the islands whose gangs take each other's results; its own by default.

    Raises:
        SchedulingError: The look-ahead is not positive.
    """

    def __init__(
        self, policy: Policy, look_ahead_s: float = DEFAULT_LOOK_AHEAD_S, precedence: Precedence | None = None
    ) -> None:
        if not look_ahead_s > 0:
            raise SchedulingError(f"look_ahead_s: must be positive, not {look_ahead_s}")
        self._policy = policy
        self._precedence = precedence or Precedence()
        self._backlog = Backlog(max(1, round(min(look_ahead_s, 1e9) * 1e9)))
        self._gangs: dict[int, Gang] = {}
        self._numbers: dict[str, set[int]] = {}
        self._leaving: set[str] = set()
        self._queues: dict[int, GangQueue] = {}
        self._most_queues = _KEPT_QUEUES
        self._marked: list[tuple[Rank, GangQueue]] = []
        self._num_grants = 0

    def submit(self, request: GangRequest) -> None:
        """Take a gang.

        Raises:
            SchedulingError: Its number does not follow the last one, or a device is negative.
        """
        self._precedence.check(request)
        queue = self._queue(request.devices)
        queue.num_gangs += 1
        self._gangs[request.number] = Gang(request, queue, self._policy.urgency(request))
        numbers = self._numbers.get(request.client)
        if numbers is None:
            numbers = self._numbers[request.client] = set()
            self._policy.joined(request.client)
        numbers.add(request.number)
        self._leaving.discard(request.client)
        self._precedence.submit(request, self)

    @property
    def has_changed(self) -> bool:
        """Whether something happened since the last call of ``grants`` that may let a gang go."""
        return bool(self._marked)

    def grants(self, now_s: float) -> list[Grant]:
        """Return what may be enqueued now, in order."""
        granted: list[Grant] = []
        while self._marked:
            rank, queue = heappop(self._marked)
            if rank is queue.marked:
                queue.marked = None
                self._grant_from(queue, now_s, granted)
        return granted

    def completed(self, number: int, now_s: float, occupied_s: float | None = None) -> None:
        """Note that a granted gang has ended on all of its devices, done or aborted.

        Args:
            number: The gang.
            now_s: When it ended.
            occupied_s: For how long it occupied its devices, all together; what the times of grants and completions
                say where devices have not told.

        Raises:
            UnknownGangError: It was not granted, or has completed before.
        """
        gang = self._gangs.get(number)
        if gang is None or gang.state is not GangState.GRANTED:
            raise UnknownGangError(f"gang {number}: was not granted, or has completed")
        devices, client = gang.queue.devices, gang.request.client
        since_granted_s = self._backlog.complete(devices, gang.cost_ns, gang.granted_s, now_s)
        if occupied_s is None:
            occupied_s = devices.count * since_granted_s
        self._policy.corrected(client, occupied_s - devices.count * gang.request.cost_s)
        self._forget(gang)
        self._mark_around(gang.queue)

    def withdraw(self, client: str) -> list[int]:
        """Drop what a client waits for, and what comes after it; return the numbers.

        Its granted gangs stay outstanding until ``completed``: a gang runs, or is aborted, on all of its devices.
        """
        dropped = self.drop([number for number in self._numbers.get(client, ()) if self._is_ungranted(number)])
        if client in self._numbers:
            self._leaving.add(client)
        else:
            self._policy.forgot(client)
        return dropped

    def drop(self, numbers: Collection[int]) -> list[int]:
        """Drop gangs of this island that have not been granted, and what comes after them; return the numbers."""
        return self._precedence.drop([number for number in numbers if self._is_ungranted(number)])

    def using(self, devices: Collection[int], *, granted: bool) -> list[int]:
        """Return the gangs that use one of these devices, by number: the granted ones, or those that were not."""
        mask = device_set(frozenset(devices)).mask
        return sorted(
            number
            for number, gang in self._gangs.items()
            if gang.queue.devices.mask & mask and (gang.state is GangState.GRANTED) is granted
        )

    def outstanding_s(self, device: int) -> float:
        """Return what a device was granted and has not completed, in seconds of cost."""
        return self._backlog.outstanding_s(device)

    def release(self, number: int) -> None:
        """Let a gang compete; called by the precedence."""
        gang = self._gangs[number]
        gang.queue.push(gang)
        self._mark(gang.queue)

    def discard(self, number: int) -> None:
        """Forget a gang that was not granted; called by the precedence."""
        gang = self._gangs[number]
        gang.state = GangState.DROPPED
        self._forget(gang)
        self._mark_around(gang.queue)

    def _grant_from(self, queue: GangQueue, now_s: float, granted: list[Grant]) -> None:
        """Grant gangs of a queue while it is their turn: no better one waits in a neighbour, or may go elsewhere."""
        while (first := queue.first()) is not None and self._backlog.has_room(queue.devices):
            rank, gang = first
            if self._marked and self._marked[0][0] < rank:
                self._mark(queue)
                return
            for neighbour in queue.neighbours:
                other = neighbour.first()
                if other is not None and other[0] < rank:
                    self._mark(neighbour)
                    return
            queue.pop()
            self._grant(gang, now_s, granted)
            for neighbour in queue.neighbours:
                self._mark(neighbour)

    def _grant(self, gang: Gang, now_s: float, granted: list[Grant]) -> None:
        request, devices = gang.request, gang.queue.devices
        gang.state = GangState.GRANTED
        gang.granted_s = now_s
        granted.append(Grant(self._num_grants, request.number))
        self._num_grants += 1
        self._backlog.grant(devices, gang.cost_ns)
        self._policy.granted(request.client, devices.count * request.cost_s)
        self._precedence.grant(request.number)

    def _is_ungranted(self, number: int) -> bool:
        gang = self._gangs.get(number)
        return gang is not None and gang.state is not GangState.GRANTED

    def _forget(self, gang: Gang) -> None:
        request = gang.request
        del self._gangs[request.number]
        gang.queue.num_gangs -= 1
        numbers = self._numbers[request.client]
        numbers.discard(request.number)
        if not numbers:
            del self._numbers[request.client]
            self._policy.left(request.client)
            if request.client in self._leaving:
                self._leaving.remove(request.client)
                self._policy.forgot(request.client)

    def _mark(self, queue: GangQueue) -> None:
        first = queue.first()
        if first is not None and (queue.marked is None or first[0] < queue.marked):
            queue.marked = first[0]
            heappush(self._marked, (queue.marked, queue))

    def _mark_around(self, queue: GangQueue) -> None:
        self._mark(queue)
        for neighbour in queue.neighbours:
            self._mark(neighbour)

    def _queue(self, devices: frozenset[int] | range) -> GangQueue:
        """Return the queue for a set of devices, a new one where there is none."""
        wanted = device_set(devices)
        queue = self._queues.get(wanted.mask)
        if queue is None:
            if len(self._queues) >= self._most_queues:
                self._discard_empty_queues()
            self._backlog.reach(wanted)
            queue = GangQueue(wanted, self._policy)
            for other in self._queues.values():
                if other.devices.mask & wanted.mask:
                    queue.neighbours.append(other)
                    other.neighbours.append(queue)
            self._queues[wanted.mask] = queue
        return queue

    def _discard_empty_queues(self) -> None:
        self._queues = {mask: queue for mask, queue in self._queues.items() if queue.num_gangs}
        for queue in self._queues.values():
            queue.neighbours = [neighbour for neighbour in queue.neighbours if neighbour.num_gangs]
        self._most_queues = max(_KEPT_QUEUES, 2 * len(self._queues))
