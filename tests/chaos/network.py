"""The network between processes: a seed draws which messages come late, twice, or not at all.

Every message that is sent or arrives is a boundary, at which an action may be scheduled; a digest of all of them
tells whether two runs were the same.
"""

import asyncio
import hashlib
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

import grpc

from tests.chaos.processes import Process

_MEAN_DELAY_S = 0.002
_LATE_SHARE = 0.02
_LATE_S = 0.3
_TIMESTAMPED = "/gnmi.gNMI/"
"""Methods whose messages tell the wall time."""

Action = Callable[[], None]


@dataclass(frozen=True)
class Listener:
    """A process that answers calls at an address."""

    process: Process
    handlers: Sequence[grpc.GenericRpcHandler]


@dataclass(eq=False)
class Connection:
    """A connection between two processes; ``on_break`` is called when it ends by no will of theirs."""

    number: int
    client: Process
    listener: Listener
    is_up: bool = True
    stalled_until_s: float = 0.0
    on_break: dict[int, Action] = field(default_factory=dict)
    forget: list[Action] = field(default_factory=list)

    @property
    def processes(self) -> tuple[Process, Process]:
        """Both ends."""
        return self.client, self.listener.process


@dataclass(eq=False)
class Lane:
    """One direction of one call, which keeps messages in order."""

    name: str
    connection: Connection
    sender: Process
    waiting: deque[tuple[bytes, Callable[[bytes], None]]] = field(default_factory=deque)
    last_s: float = 0.0


class Network:
    """Connects processes; all its randomness comes from ``draws``."""

    def __init__(self, draws: Random) -> None:
        self.boundaries = 0
        self.failures: list[str] = []
        self._draws = draws
        self._digest = hashlib.sha256()
        self._numbers = count()
        self._listeners: dict[str, Listener] = {}
        self._connections: dict[int, Connection] = {}
        self._isolated: set[str] = set()
        self._due: list[tuple[int, int, Action]] = []
        self._to_repeat: set[str] = set()

    @property
    def digest(self) -> str:
        """The digest of the times and contents of all messages so far."""
        return self._digest.hexdigest()

    @property
    def num_connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    # ---- connections ------------------------------------------------------------------------------------------------

    def listen(self, address: str, process: Process, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Make a process listen at an address, in place of any other."""
        listener = Listener(process, tuple(handlers))
        self._listeners[address] = listener

        def stop() -> None:
            if self._listeners.get(address) is listener:
                del self._listeners[address]

        process.at_end(stop)

    def connect(self, client: Process, address: str) -> Connection | None:
        """Return a connection to the listener at an address; None where there is none or it cannot be reached."""
        listener = self._listeners.get(address)
        if listener is None or not listener.process.is_alive or not self._is_open(client, listener.process):
            return None
        connection = Connection(next(self._numbers), client, listener)
        self._connections[connection.number] = connection
        connection.forget = [process.at_end(lambda: self.close(connection)) for process in connection.processes]
        return connection

    def close(self, connection: Connection) -> None:
        """End a connection; what is under way on it is lost, and those of its ends that live are told."""
        if connection.is_up:
            connection.is_up = False
            del self._connections[connection.number]
            for forget in connection.forget:
                forget()
            for tell in tuple(connection.on_break.values()):
                asyncio.get_running_loop().call_later(self._delay_s(), tell)
            connection.on_break.clear()

    def isolate(self, name: str) -> None:
        """Cut the process of a name off, now and after restarts, until it is joined again."""
        self._isolated.add(name)
        self.cut(name)

    def join(self, name: str) -> None:
        """End the isolation of a process."""
        self._isolated.discard(name)

    def cut(self, name: str) -> None:
        """Break all connections of a process; new ones may be made at once."""
        for connection in self._of(name):
            self.close(connection)

    def cut_between(self, client: str, listener: str) -> None:
        """Break the connections that one process has made to another."""
        for connection in self._of(listener):
            if connection.client.name == client:
                self.close(connection)

    def stall(self, name: str, until_s: float) -> None:
        """Hold all messages of a process until a time."""
        for connection in self._of(name):
            connection.stalled_until_s = max(connection.stalled_until_s, until_s)

    def heal(self) -> None:
        """End all isolations, and run the actions scheduled at later boundaries now."""
        self._isolated.clear()
        self._to_repeat.clear()
        while self._due:
            heapq.heappop(self._due)[2]()

    # ---- messages ---------------------------------------------------------------------------------------------------

    def repeat_next(self, name: str) -> None:
        """Deliver the next single-message request of a process twice."""
        self._to_repeat.add(name)

    def is_repeated(self, process: Process) -> bool:
        """Whether the request that a process sends now is to be delivered twice."""
        if process.name in self._to_repeat:
            self._to_repeat.remove(process.name)
            return True
        return False

    def send(self, lane: Lane, message: bytes, deliver: Callable[[bytes], None]) -> None:
        """Deliver a message behind those that are under way on its lane, unless the connection ends before."""
        self._boundary()
        if lane.sender.is_alive and lane.connection.is_up:
            lane.waiting.append((message, deliver))
            loop = asyncio.get_running_loop()
            lane.last_s = max(lane.last_s, loop.time() + self._delay_s(), lane.connection.stalled_until_s)
            loop.call_at(lane.last_s, self._arrive, lane)

    def _arrive(self, lane: Lane) -> None:
        loop, connection = asyncio.get_running_loop(), lane.connection
        if connection.stalled_until_s > loop.time():
            loop.call_at(connection.stalled_until_s, self._arrive, lane)
            return
        self._boundary()
        message, deliver = lane.waiting.popleft()
        if connection.is_up:
            self._note(f"{loop.time():.12f} {connection.number} {lane.name}", message)
            deliver(message)

    def at_boundary(self, number: int, action: Action) -> None:
        """Run an action after so many more boundaries."""
        heapq.heappush(self._due, (self.boundaries + number, next(self._numbers), action))

    def _boundary(self) -> None:
        self.boundaries += 1
        while self._due and self._due[0][0] <= self.boundaries:
            heapq.heappop(self._due)[2]()

    def _note(self, what: str, message: bytes) -> None:
        self._digest.update(what.encode())
        self._digest.update(b"" if _TIMESTAMPED in what else message)

    def _delay_s(self) -> float:
        delay_s = self._draws.expovariate(1 / _MEAN_DELAY_S)
        return delay_s + self._draws.uniform(0, _LATE_S) if self._draws.random() < _LATE_SHARE else delay_s

    def _is_open(self, *processes: Process) -> bool:
        return self._isolated.isdisjoint(process.name for process in processes)

    def _of(self, name: str) -> list[Connection]:
        return [
            connection
            for connection in self._connections.values()
            if name in (process.name for process in connection.processes)
        ]
