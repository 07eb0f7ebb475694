"""Shards on their way from a host that leaves to another one.

They travel as pieces do, straight from host to host. Their executions are negative: move n is execution -1 - n. Both
hosts are told by the server, and the shard may come before its word: then it waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from runtime.executor.copies import Copies
from runtime.executor.incoming import Receiver
from runtime.executor.memory import Reservation
from runtime.executor.pieces import array_of
from runtime.executor.store import Found, HostStore
from runtime.frames import FrameError
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Send
from runtime.messages import Failure, ForgetShards, GiveShard, TakeShard
from runtime.store.errors import StoreError
from runtime.transport.arrays import ArenaArrays

_Data = bytearray | memoryview | Failure


@dataclass(eq=False, slots=True)
class _Incoming:
    """A shard that comes: its memory, whether there is room for it, and what has come."""

    message: TakeShard
    reservation: Reservation | None = None
    has_room: bool = False
    found: Found | None = None


class Moves:
    """The shards that come to this host, and those that go. ``tell`` is told of each move whether the shard came."""

    def __init__(
        self, store: HostStore, arrays: ArenaArrays, copies: Copies, tell: Callable[[int, bool], None]
    ) -> None:
        self._store = store
        self._arrays = arrays
        self._copies = copies
        self._tell = tell
        self._incoming: dict[int, _Incoming] = {}
        self._early: dict[int, _Data] = {}
        self._lost_early: set[int] = set()
        self._last = -1

    def take(self, message: TakeShard) -> None:
        """Reserve memory for a shard; the client holds it from now on."""
        self._last = message.move
        incoming = self._incoming[message.move] = _Incoming(message)
        self._store.expect(message.client, message.handle, message.shard)

        def come() -> None:
            incoming.has_room = True
            self._end_if_there(incoming)

        try:
            incoming.reservation, has_room = self._store.adopt(
                message.client, message.handle, message.shard, message.spec.size_bytes, message.device, come
            )
            incoming.has_room |= has_room
        except StoreError:
            self._fail(incoming)
            return
        if message.move in self._lost_early:
            self._lost_early.remove(message.move)
            self._fail(incoming)
        early = self._early.pop(message.move, None)
        if early is not None:
            try:
                self.receive(message.move, early)
            except FrameError:
                self._fail(incoming)

    def give(self, message: GiveShard, send: Callable[[int, Send, Found], None]) -> None:
        """Send a shard, or why there is none."""
        way = Send(0, message.host, Piece(message.shard, message.shard, (), ()), is_whole=True)
        self._store.when_there(
            message.client, message.handle, message.shard, lambda found: send(_execution(message.move), way, found)
        )

    def receive(self, move: int, data: _Data) -> None:
        """Take a shard, or why there is none."""
        incoming = self._incoming.get(move)
        if incoming is None:
            if move > self._last:
                self._early[move] = data
            return
        if isinstance(data, Failure):
            self._find(incoming, data)
            return
        spec = incoming.message.spec
        array = array_of(data, spec.shape, np.dtype(spec.dtype), spec.is_ragged)
        if array.flags.writeable:
            self._find(incoming, array)
        else:  # the other host lends it, and leaves
            own = self._arrays.empty(array.shape, array.dtype)
            self._copies.copy(own, array, partial(self._find, incoming, own))

    def lose(self, move: int) -> None:
        """Take note that a shard was lost on its way; the host that had it has it still."""
        incoming = self._incoming.get(move)
        if incoming is not None:
            self._fail(incoming)
        elif move > self._last:
            self._lost_early.add(move)

    def forget(self, message: ForgetShards) -> None:
        """Forget shards that came, or are still to come."""
        for incoming in tuple(self._incoming.values()):
            of = incoming.message
            if (of.client, of.handle) == (message.client, message.handle) and of.shard in message.shards:
                self._end(incoming)
        self._store.forget(message.client, message.handle, message.shards)

    def drop_client(self, client: int) -> None:
        """Forget what comes for a client that is gone."""
        for incoming in tuple(self._incoming.values()):
            if incoming.message.client == client:
                self._end(incoming)

    def _find(self, incoming: _Incoming, found: Found) -> None:
        """Note what has come, unless it was forgotten meanwhile."""
        if self._incoming.get(incoming.message.move) is incoming:
            incoming.found = found if incoming.found is None else incoming.found
            self._end_if_there(incoming)

    def _end_if_there(self, incoming: _Incoming) -> None:
        if incoming.found is not None and incoming.has_room:
            of = incoming.message
            self._end(incoming)
            self._store.put(of.client, of.handle, of.shard, incoming.found)
            self._tell(of.move, True)

    def _fail(self, incoming: _Incoming) -> None:
        """Let a shard go where it was, so that the server may begin its move again."""
        of = incoming.message
        self._end(incoming)
        self._store.forget(of.client, of.handle, [of.shard])
        self._tell(of.move, False)

    def _end(self, incoming: _Incoming) -> None:
        del self._incoming[incoming.message.move]
        if incoming.reservation is not None:
            self._store.memory.finish(incoming.message.client, None, incoming.reservation)


class PieceRouter:
    """Hands pieces that other hosts send to the dataflow, and shards that move to ``Moves``."""

    def __init__(self, dataflow: Receiver, moves: Moves) -> None:
        self._dataflow = dataflow
        self._moves = moves

    def receive(self, number: int, edge: int, destination: int, source: int, data: _Data, /) -> None:
        """Take a piece, or why it will not come."""
        if number < 0:
            self._moves.receive(-1 - number, data)
        else:
            self._dataflow.receive(number, edge, destination, source, data)

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str, /) -> None:
        """Take note that a piece was lost on its way."""
        if number < 0:
            self._moves.lose(-1 - number)
        else:
            self._dataflow.lose(number, edge, destination, source, cause)

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int, /) -> memoryview | None:
        """Return the memory where a piece is needed, or None if any will do."""
        return None if number < 0 else self._dataflow.place(number, edge, destination, source, size_bytes)


def _execution(move: int) -> int:
    return -1 - move
