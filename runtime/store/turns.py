"""Who gets bytes when: the turns of allocations, spilling, and moves."""

from collections.abc import Mapping
from itertools import chain

from runtime.store.allocations import Allocation, AllocationState, Cancelled, Effect, Free, Move, Ready
from runtime.store.budgets import Memory
from runtime.store.buffers import HOST, Handle, LogicalBuffer, Owner, Shard


class Turns:
    """The memories of a host, and the allocations that wait for them.

    An allocation has its turn when it is the first in each of its memories and for each of its inputs. Allocations
    enter all of these queues at once, so the one that arrived first has its turn, and waits only for computations that
    are under way, for moves, and for references to be released.

    Attributes:
        memories: By number.
        buffers: What the memories hold, and what allocations are going to put there.
        effects: What the executor has to do.
    """

    def __init__(self, budgets_bytes: Mapping[int, int]) -> None:
        self.memories = {number: Memory(number, capacity_bytes) for number, capacity_bytes in budgets_bytes.items()}
        self.buffers: dict[Handle, LogicalBuffer] = {}
        self.effects: list[Effect] = []
        self._open: dict[str, dict[Owner, set[Allocation]]] = {}

    def open_of(self, owner: Owner) -> list[Allocation]:
        """Return the allocations that have not ended of an owner and what it covers."""
        of_client = self._open.get(owner.client, {})
        if owner.execution is not None:
            return list(of_client.get(owner, ()))
        return [allocation for allocations in of_client.values() for allocation in allocations]

    def enqueue(self, allocation: Allocation) -> None:
        """Add an allocation."""
        of_client = self._open.setdefault(allocation.owner.client, {})
        of_client.setdefault(allocation.owner, set()).add(allocation)
        for shard in chain(allocation.outputs, allocation.inputs):
            shard.buffer.num_uses += 1
        for shard in allocation.inputs:
            shard.claims.append(allocation)
        for number in allocation.memories:
            self.memories[number].waiting.append(allocation)

    def advance(self) -> None:
        """Give allocations whose turn has come what they need, as far as it is there."""
        has_advanced = True
        while has_advanced:
            has_advanced = False
            for memory in self.memories.values():
                while memory.waiting and self._try(memory.waiting[0]):
                    has_advanced = True

    def cancel(self, allocation: Allocation) -> None:
        """Cancel an allocation that is not ready, and those that wait for its outputs."""
        if allocation.state is AllocationState.MOVING:
            allocation.state = AllocationState.CANCELLED  # it ends with the last of its moves
            return
        allocation.state = AllocationState.CANCELLED
        for number in allocation.memories:
            self.memories[number].waiting.remove(allocation)
        for shard in allocation.inputs:
            shard.claims.remove(allocation)
        for shard in allocation.outputs:
            del shard.buffer.shards[shard.number]
            while shard.claims:
                dependant = shard.claims[0]
                cause = f"{shard}: is never going to be there, since {allocation.owner} gave up"
                self.effects.append(Cancelled(dependant, cause))
                self.cancel(dependant)
        self._close(allocation)

    def end(self, allocation: Allocation) -> None:
        """Let go of what a ready allocation holds in place."""
        if allocation.state is not AllocationState.CANCELLED:
            allocation.state = AllocationState.FINISHED
        for shard in chain(allocation.outputs, allocation.inputs):
            shard.num_pins -= 1
            if shard.num_pins == 0 and shard.memory is not None:
                self.memories[shard.memory].idle[shard] = None
        self._close(allocation)

    def moved(self, shard: Shard, source: int, destination: int) -> None:
        """Note that a shard has arrived."""
        self.memories[source].leaving_bytes -= shard.size_bytes
        self._free(shard, source)
        shard.memory, shard.destination = destination, None
        if shard.num_pins:
            allocation = shard.claims.popleft()
            allocation.num_moves -= 1
            if allocation.num_moves == 0:
                self._arrive(allocation)
        else:
            self.memories[destination].idle[shard] = None
        self._end_use(shard.buffer)

    def free_if_unused(self, buffer: LogicalBuffer) -> None:
        """Free the bytes of a buffer if nobody refers to it and nothing under way uses it."""
        if buffer.references or buffer.num_uses:
            return
        del self.buffers[buffer.handle]
        for shard in buffer.shards.values():
            if shard.memory is not None:
                self.memories[shard.memory].idle.pop(shard, None)
                self._free(shard, shard.memory)

    def _try(self, allocation: Allocation) -> bool:
        """Give the first allocation of a memory what it needs; return whether it got it."""
        memories = [self.memories[number] for number in allocation.memories]
        for memory in memories:
            if memory.waiting[0] is not allocation:
                return False
        for shard, number in allocation.inputs.items():
            if not _is_available(shard, number, allocation):
                return False
        missing_bytes = allocation.missing_bytes()
        if any(missing_bytes[memory.number] > memory.free_bytes for memory in memories):
            for memory in memories:
                if memory.number != HOST:
                    self._spill(memory, allocation)
            return False
        for memory in memories:
            memory.waiting.popleft()
        allocation.state = AllocationState.MOVING
        for shard, number in allocation.outputs.items():
            self.memories[number].used_bytes += shard.size_bytes
            shard.memory = number
            shard.num_pins = 1
        for shard, number in allocation.inputs.items():
            shard.num_pins += 1
            if shard.memory == number:
                self.memories[number].idle.pop(shard, None)
                shard.claims.popleft()
            else:
                allocation.num_moves += 1
                self._start_move(shard, number)
        if allocation.num_moves == 0:
            self._arrive(allocation)
        return True

    def _spill(self, memory: Memory, allocation: Allocation) -> None:
        """Spill idle shards of a device for an allocation, if that is enough and nobody waits for the host's memory."""
        host = self.memories[HOST]
        if host.waiting and host.waiting[0] is not allocation:
            return
        wanted_bytes = allocation.missing_bytes()
        room_bytes = host.free_bytes - wanted_bytes.get(HOST, 0)
        for shard in memory.victims(wanted_bytes[memory.number], room_bytes, allocation.inputs):
            self._start_move(shard, HOST)

    def _start_move(self, shard: Shard, destination: int) -> None:
        assert shard.memory is not None
        source = self.memories[shard.memory]
        source.idle.pop(shard, None)
        source.leaving_bytes += shard.size_bytes
        self.memories[destination].used_bytes += shard.size_bytes
        shard.destination = destination
        shard.buffer.num_uses += 1
        self.effects.append(Move(shard.buffer.handle, shard.number, source.number, destination, shard.size_bytes))

    def _arrive(self, allocation: Allocation) -> None:
        """Let an allocation whose inputs are in place run, or end it if it is not going to run."""
        if allocation.is_migration or allocation.state is AllocationState.CANCELLED:
            self.end(allocation)
            return
        allocation.state = AllocationState.READY
        if allocation.has_stalled:
            self.effects.append(Ready(allocation))

    def _close(self, allocation: Allocation) -> None:
        of_client = self._open[allocation.owner.client]
        of_client[allocation.owner].remove(allocation)
        if not of_client[allocation.owner]:
            del of_client[allocation.owner]
        if not of_client:
            del self._open[allocation.owner.client]
        for shard in chain(allocation.outputs, allocation.inputs):
            self._end_use(shard.buffer)

    def _end_use(self, buffer: LogicalBuffer) -> None:
        buffer.num_uses -= 1
        self.free_if_unused(buffer)

    def _free(self, shard: Shard, memory: int) -> None:
        self.memories[memory].used_bytes -= shard.size_bytes
        self.effects.append(Free(shard.buffer.handle, shard.number, memory, shard.size_bytes))


def _is_available(shard: Shard, memory: int, allocation: Allocation) -> bool:
    """Return whether an allocation may take an input: it is the next to, and the shard stays or may be moved."""
    if shard.claims[0] is not allocation or shard.memory is None or shard.destination is not None:
        return False
    return shard.memory == memory or shard.num_pins == 0
