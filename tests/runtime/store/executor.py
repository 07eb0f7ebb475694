"""An executor without bytes: it carries out what a store asks for, and counts what the memories must hold."""

from runtime.store.allocations import Allocation, Cancelled, Free, Move, Ready
from runtime.store.buffers import Handle
from runtime.store.object_store import ObjectStore


class Executor:
    """Carries effects out when it is told to.

    Attributes:
        moves: Moves that have not been carried out, in order.
        ready: Allocations that have become ready, in order.
        cancelled: Those that are never going to be, with the cause.
        freed: What was freed: handle, shard, memory.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.moves: list[Move] = []
        self.ready: list[Allocation] = []
        self.cancelled: list[tuple[Allocation, str]] = []
        self.freed: list[tuple[Handle, int, int]] = []

    def take(self) -> None:
        """Take the effects of the store."""
        for effect in self.store.take_effects():
            match effect:
                case Move():
                    self.moves.append(effect)
                case Ready():
                    self.ready.append(effect.allocation)
                case Cancelled():
                    self.cancelled.append((effect.allocation, effect.cause))
                case Free():
                    self.freed.append((effect.handle, effect.shard, effect.memory))

    def move(self, at: int = 0) -> Move:
        """Carry out one of the moves."""
        self.take()
        move = self.moves.pop(at)
        self.store.moved(move.handle, move.shard)
        self.take()
        return move
