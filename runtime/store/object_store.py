"""The object store of one host."""

from collections.abc import Iterator, Mapping, Sequence

from runtime.store.allocations import Allocation, AllocationState, Cancelled, Effect
from runtime.store.buffers import HOST, Handle, InputShard, LogicalBuffer, NewShard, Owner, Shard
from runtime.store.errors import ConflictError, StoreError, TooLargeError, UnknownHandleError, UnknownMemoryError
from runtime.store.turns import Turns


class ObjectStore:
    """Buffers by handle, in the memories of one host, each with a budget.

    An allocation that finds no room stalls; it never fails for that. Allocations of a memory, and those that take the
    same shard, get their turn in order of arrival, so no small one passes a large one. Where devices lack room, shards
    that no computation uses are spilled to the host, least recently used first, unless an allocation waits for the
    host's own memory.

    After every call the caller takes the effects and carries them out in order.

    Args:
        budgets_bytes: By memory, its budget: devices by number, the host's own as HOST.

    Raises:
        StoreError: The host's memory is missing, or a budget is negative.
    """

    def __init__(self, budgets_bytes: Mapping[int, int]) -> None:
        if HOST not in budgets_bytes:
            raise StoreError("budgets_bytes: the memory of the host is missing")
        for number, capacity_bytes in budgets_bytes.items():
            if capacity_bytes < 0:
                raise StoreError(f"budgets_bytes: {_memory_name(number)}: must not be negative, not {capacity_bytes}")
        self._turns = Turns(budgets_bytes)
        self._buffers = self._turns.buffers
        self._held: dict[str, dict[Owner, set[Handle]]] = {}

    def take_effects(self) -> list[Effect]:
        """Return what has become necessary since the last call, in order."""
        effects, self._turns.effects = self._turns.effects, []
        return effects

    def allocate(self, owner: Owner, outputs: Sequence[NewShard] = (), inputs: Sequence[InputShard] = ()) -> Allocation:
        """Ask for what a computation needs, all at once.

        The owner gets one reference to every new buffer. Outputs may belong to a buffer that it holds already.

        Returns:
            The allocation. If it is not ready, an effect ``Ready`` or ``Cancelled`` will tell. When the computation has
            ended, or is not going to run, call ``finish``.

        Raises:
            UnknownHandleError: An input is not here.
            UnknownMemoryError: The host does not have the memory.
            ConflictError: An output is here already, or belongs to others; or the request contradicts itself.
            TooLargeError: Outputs and inputs together exceed the budget of a memory.
        """
        self._check(owner, outputs, inputs)
        new_shards: dict[Shard, int] = {}
        for new in outputs:
            buffer = self._buffers.get(new.handle)
            if buffer is None:
                buffer = self._buffers[new.handle] = LogicalBuffer(new.handle)
                self._refer(buffer, owner)
            shard = buffer.shards[new.shard] = Shard(buffer, new.shard, new.size_bytes)
            new_shards[shard] = new.memory
        taken = {self._shard(wanted.handle, wanted.shard): wanted.memory for wanted in inputs}
        return self._enqueue(Allocation(owner, new_shards, taken))

    def migrate(self, handle: Handle, shard: int, memory: int) -> Allocation:
        """Ask that a shard be moved to a memory, after the computations that use it have ended.

        Raises:
            UnknownHandleError: It is not here.
            UnknownMemoryError: The host does not have the memory.
            TooLargeError: It exceeds the budget of the memory.
        """
        moved = self._shard(handle, shard)
        owner = moved.buffer.owner
        if owner is None:
            raise UnknownHandleError(f"{handle}: has been released")
        self._check(owner, (), [InputShard(handle, shard, memory)])
        return self._enqueue(Allocation(owner, {}, {moved: memory}, is_migration=True))

    def occupy(self, memory: int, size_bytes: int) -> bool:
        """Take bytes for a computation that names no buffer, if there is room and nobody waits; ``vacate`` follows.

        It does what an allocation of one new buffer would, in a fraction of the time.

        Raises:
            UnknownMemoryError: The host does not have the memory.
        """
        found = self._turns.memories.get(memory)
        if found is None:
            raise UnknownMemoryError(f"{_memory_name(memory)}: is not of this host")
        if found.waiting or size_bytes > found.free_bytes:
            return False
        found.used_bytes += size_bytes
        return True

    def vacate(self, memory: int, size_bytes: int) -> None:
        """Give back bytes that were occupied."""
        found = self._turns.memories[memory]
        found.used_bytes -= size_bytes
        if found.waiting:
            self._turns.advance()

    def finish(self, allocation: Allocation) -> None:
        """Note that the computation of an allocation has ended, or is not going to run.

        Raises:
            ConflictError: It has been finished before.
        """
        if allocation.state is AllocationState.FINISHED:
            raise ConflictError(f"allocation of {allocation.owner}: has been finished")
        if allocation.state is AllocationState.READY:
            self._turns.end(allocation)
        elif allocation.state is not AllocationState.CANCELLED:
            self._turns.cancel(allocation)
        self._turns.advance()

    def moved(self, handle: Handle, shard: int) -> None:
        """Note that a ``Move`` has been carried out.

        Raises:
            UnknownHandleError: The shard is not being moved.
        """
        moving = self._shard(handle, shard)
        if moving.memory is None or moving.destination is None:
            raise UnknownHandleError(f"{handle} shard {shard}: is not being moved")
        self._turns.moved(moving, moving.memory, moving.destination)
        self._turns.advance()

    def retain(self, handle: Handle, owner: Owner) -> None:
        """Add a reference to a logical buffer.

        Raises:
            UnknownHandleError: It is not here, or has been released by all.
        """
        buffer = self._buffers.get(handle)
        if buffer is None or not buffer.references:
            raise UnknownHandleError(f"{handle}: is not in the store")
        self._refer(buffer, owner)

    def release(self, handle: Handle, owner: Owner) -> None:
        """Drop a reference to a logical buffer. The last one frees it, once computations under way have ended.

        Raises:
            UnknownHandleError: The owner has no reference to it.
        """
        buffer = self._buffers.get(handle)
        if buffer is None or owner not in buffer.references:
            raise UnknownHandleError(f"{handle}: {owner} has no reference to it")
        if buffer.references[owner] > 1:
            buffer.references[owner] -= 1
        else:
            self._drop_references(buffer, owner)
        self._turns.advance()

    def drop_owner(self, owner: Owner) -> None:
        """Drop all references of an owner, and of what it covers, and cancel its allocations that are not ready.

        Computations that are under way keep their buffers until ``finish`` is called for them.
        """
        for allocation in self._turns.open_of(owner):
            if allocation.state in (AllocationState.STALLED, AllocationState.MOVING):
                self._turns.effects.append(Cancelled(allocation, f"{owner}: was dropped"))
                self._turns.cancel(allocation)
        of_client = self._held.get(owner.client, {})
        for holder in list(of_client) if owner.execution is None else [owner]:
            for handle in list(of_client.get(holder, ())):
                self._drop_references(self._buffers[handle], holder)
        self._turns.advance()

    def memory_of(self, handle: Handle, shard: int) -> int | None:
        """Return the memory in which a shard is; None before it is allocated.

        Raises:
            UnknownHandleError: It is not here.
        """
        return self._shard(handle, shard).memory

    def has_shard(self, handle: Handle, shard: int) -> bool:
        """Return whether a buffer that somebody refers to has a shard, allocated or waiting to be."""
        buffer = self._buffers.get(handle)
        return buffer is not None and bool(buffer.references) and shard in buffer.shards

    def used_bytes(self, memory: int) -> int:
        """Return the bytes that count against the budget of a memory.

        Raises:
            UnknownMemoryError: The host does not have the memory.
        """
        if memory not in self._turns.memories:
            raise UnknownMemoryError(f"{_memory_name(memory)}: is not of this host")
        return self._turns.memories[memory].used_bytes

    def owned_bytes(self, owner: Owner) -> int:
        """Return the bytes accounted to an owner and what it covers; a shard on the move counts in both memories."""
        return sum(
            shard.size_bytes * ((shard.memory is not None) + (shard.destination is not None))
            for holder, handles in self._held.get(owner.client, {}).items()
            if owner.covers(holder)
            for handle in handles
            if self._buffers[handle].owner == holder
            for shard in self._buffers[handle].shards.values()
        )

    @property
    def num_stalled(self) -> int:
        """The allocations that wait for a turn or for bytes."""
        return len({allocation for memory in self._turns.memories.values() for allocation in memory.waiting})

    def __iter__(self) -> Iterator[Handle]:
        """Iterate over the handles of all buffers."""
        return iter(self._buffers)

    def __contains__(self, handle: object) -> bool:
        return handle in self._buffers

    def _check(self, owner: Owner, outputs: Sequence[NewShard], inputs: Sequence[InputShard]) -> None:
        if not outputs and not inputs:
            raise ConflictError(f"allocation of {owner}: names no shard")
        places: dict[tuple[Handle, int], int] = {}
        wanted_bytes: dict[int, int] = {}
        for new in outputs:
            name = f"{new.handle} shard {new.shard}"
            buffer = self._buffers.get(new.handle)
            if buffer is not None and owner not in buffer.references:
                raise ConflictError(f"{new.handle}: is not held by {owner}")
            if (new.handle, new.shard) in places or (buffer is not None and new.shard in buffer.shards):
                raise ConflictError(f"{name}: is allocated twice")
            if new.size_bytes < 0:
                raise ConflictError(f"{name}: size_bytes: must not be negative, not {new.size_bytes}")
            places[new.handle, new.shard] = new.memory
            self._check_fits(name, new.memory, new.size_bytes, wanted_bytes)
        for wanted in inputs:
            shard = self._shard(wanted.handle, wanted.shard)
            if not shard.buffer.references:
                raise UnknownHandleError(f"{wanted.handle}: has been released")
            place = places.get((wanted.handle, wanted.shard))
            if place == wanted.memory:
                continue
            if place is not None:
                raise ConflictError(f"{shard}: is wanted in two memories")
            places[wanted.handle, wanted.shard] = wanted.memory
            self._check_fits(str(shard), wanted.memory, shard.size_bytes, wanted_bytes)

    def _check_fits(self, name: str, memory: int, size_bytes: int, wanted_bytes: dict[int, int]) -> None:
        """Add the bytes of a shard to those that a request wants of a memory, and refuse what can never fit."""
        if memory not in self._turns.memories:
            raise UnknownMemoryError(f"{name}: {_memory_name(memory)}: is not of this host")
        capacity_bytes = self._turns.memories[memory].capacity_bytes
        rest_bytes = wanted_bytes.get(memory, 0)
        wanted_bytes[memory] = rest_bytes + size_bytes
        if wanted_bytes[memory] > capacity_bytes:
            rest = f", with {rest_bytes:,} beside them," if rest_bytes else ""
            raise TooLargeError(
                f"{name}: {size_bytes:,} bytes{rest} exceed the {capacity_bytes:,} of {_memory_name(memory)}"
            )

    def _shard(self, handle: Handle, number: int) -> Shard:
        buffer = self._buffers.get(handle)
        if buffer is None:
            raise UnknownHandleError(f"{handle}: is not in the store")
        if number not in buffer.shards:
            raise UnknownHandleError(f"{handle} shard {number}: is not in the store")
        return buffer.shards[number]

    def _enqueue(self, allocation: Allocation) -> Allocation:
        self._turns.enqueue(allocation)
        self._turns.advance()
        allocation.has_stalled = not allocation.is_ready
        return allocation

    def _refer(self, buffer: LogicalBuffer, owner: Owner) -> None:
        buffer.references[owner] = buffer.references.get(owner, 0) + 1
        self._held.setdefault(owner.client, {}).setdefault(owner, set()).add(buffer.handle)

    def _drop_references(self, buffer: LogicalBuffer, owner: Owner) -> None:
        del buffer.references[owner]
        held = self._held[owner.client]
        held[owner].remove(buffer.handle)
        if not held[owner]:
            del held[owner]
        if not held:
            del self._held[owner.client]
        self._turns.free_if_unused(buffer)


def _memory_name(number: int) -> str:
    return "the host's memory" if number == HOST else f"device {number}"
