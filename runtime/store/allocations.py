"""Allocations, and what the store asks its executor to do."""

from dataclasses import dataclass
from enum import Enum, auto

from runtime.store.buffers import Handle, Owner, Shard


class AllocationState(Enum):
    """How far an allocation is."""

    STALLED = auto()
    """It waits for bytes, for its turn, or for a shard in use elsewhere."""
    MOVING = auto()
    """It has its bytes; inputs are being moved to where they are needed."""
    READY = auto()
    """Outputs are allocated and inputs are in place, and stay there until it is finished."""
    FINISHED = auto()
    CANCELLED = auto()
    """Its owner was dropped, or an input is never going to be there."""


class Allocation:
    """What one computation needs on this host, given all at once: memory for outputs, and inputs in place.

    Attributes:
        owner: Whose computation it is.
        outputs: The shards that it writes, each with its memory.
        inputs: The shards that it reads, each with the memory in which they must be.
        memories: The memories in which it has shards.
        state: How far it is.
        num_moves: Inputs that are being moved.
        is_migration: Whether it is finished as soon as it is ready.
        has_stalled: Whether the caller was told to wait.
    """

    __slots__ = ("has_stalled", "inputs", "is_migration", "memories", "num_moves", "outputs", "owner", "state")

    def __init__(
        self, owner: Owner, outputs: dict[Shard, int], inputs: dict[Shard, int], *, is_migration: bool = False
    ) -> None:
        self.owner = owner
        self.outputs = outputs
        self.inputs = inputs
        self.memories = {*outputs.values(), *inputs.values()}
        self.state = AllocationState.STALLED
        self.num_moves = 0
        self.is_migration = is_migration
        self.has_stalled = False

    @property
    def is_ready(self) -> bool:
        """Whether the computation may run."""
        return self.state is AllocationState.READY

    def missing_bytes(self) -> dict[int, int]:
        """Return by memory the bytes of outputs, and of inputs that are elsewhere."""
        missing = dict.fromkeys(self.memories, 0)
        for shard, memory in self.outputs.items():
            missing[memory] += shard.size_bytes
        for shard, memory in self.inputs.items():
            if shard.memory != memory:
                missing[memory] += shard.size_bytes
        return missing


@dataclass(frozen=True, slots=True)
class Ready:
    """A stalled allocation has become ready."""

    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An allocation that was not ready is never going to be; ``cause`` says why."""

    allocation: Allocation
    cause: str


@dataclass(frozen=True, slots=True)
class Move:
    """Copy a shard from one memory to another, then call ``ObjectStore.moved``. Both copies count until then."""

    handle: Handle
    shard: int
    source: int
    destination: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Free:
    """Free the bytes of a shard in a memory: they count no longer."""

    handle: Handle
    shard: int
    memory: int
    size_bytes: int


Effect = Ready | Cancelled | Move | Free
