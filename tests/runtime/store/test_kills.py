"""Clients come, compute, hand buffers to each other and are killed; every byte stays accounted for."""

import random
from collections import Counter

import pytest

from runtime.store.allocations import Allocation, AllocationState
from runtime.store.buffers import HOST, Handle, InputShard, NewShard, Owner
from runtime.store.object_store import ObjectStore
from tests.runtime.store.executor import Executor

NUM_KILLS, NUM_PARTS = 10_000, 5
BUDGETS_BYTES = {0: 100, 1: 60, HOST: 120}


class Cluster:
    """A store with clients that act at random, and books of its own.

    Attributes:
        references: By handle and owner, what was handed out.
        sizes_bytes: By handle and shard.
        under_way: Allocations that were asked for and have not ended, in order.
        occupied: Memory and bytes of computations under way that name no buffer.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = ObjectStore(BUDGETS_BYTES)
        self.executor = Executor(self.store)
        self.references: dict[Handle, Counter[Owner]] = {}
        self.sizes_bytes: dict[tuple[Handle, int], int] = {}
        self.under_way: list[Allocation] = []
        self.occupied: list[tuple[int, int]] = []
        self.num_handles = 0

    def owner(self) -> Owner:
        return Owner(self.chance.choice("abcd"), self.chance.choice([None, 1, 2]))

    def compute(self) -> None:
        """Ask for outputs in some memories and for inputs that the owner has."""
        owner, outputs, inputs = self.owner(), [], []
        for _ in range(self.chance.randint(0, 2)):
            self.num_handles += 1
            handle = Handle(owner.client, self.num_handles)
            for shard in range(self.chance.randint(1, 2)):
                size_bytes = self.chance.choice([0, 1, 5, 10, 20])
                outputs.append(NewShard(handle, shard, size_bytes, self.chance.choice([0, 0, 1, HOST])))
        held = [handle for handle, references in self.references.items() if references[owner]]
        for handle in self.chance.sample(held, min(len(held), self.chance.randint(0, 2))):
            shards = [shard for other, shard in self.sizes_bytes if other == handle]
            memory = self.chance.choice([0, 1])
            inputs += [InputShard(handle, shard, memory) for shard in shards if self.is_known(handle, shard)]
        wanted: Counter[int] = Counter()
        for new in outputs:
            wanted[new.memory] += new.size_bytes
        for taken in inputs:
            wanted[taken.memory] += self.sizes_bytes[taken.handle, taken.shard]
        if (not outputs and not inputs) or any(wanted[memory] > BUDGETS_BYTES[memory] for memory in wanted):
            return
        for new in outputs:
            self.sizes_bytes[new.handle, new.shard] = new.size_bytes
            self.references[new.handle] = Counter({owner: 1})
        self.under_way.append(self.store.allocate(owner, outputs, inputs))

    def occupy(self) -> None:
        """Take bytes without a buffer, which is possible only where nobody waits for any."""
        memory, size_bytes = self.chance.choice([0, 1]), self.chance.choice([0, 1, 5, 10, 20])
        waits = any(memory in found.memories for found in self.under_way if found.state is AllocationState.STALLED)
        fits = self.store.used_bytes(memory) + size_bytes <= BUDGETS_BYTES[memory]
        assert self.store.occupy(memory, size_bytes) == (fits and not waits)
        if fits and not waits:
            self.occupied.append((memory, size_bytes))

    def vacate(self) -> None:
        """End a computation that names no buffer."""
        if self.occupied:
            self.store.vacate(*self.occupied.pop(self.chance.randrange(len(self.occupied))))

    def is_known(self, handle: Handle, shard: int) -> bool:
        """Whether a shard has not been cancelled."""
        try:
            self.store.memory_of(handle, shard)
        except ValueError:
            return False
        return True

    def end_one(self) -> None:
        """End a computation, or carry out a move."""
        self.executor.take()
        ready = [allocation for allocation in self.under_way if allocation.is_ready]
        if self.executor.moves and self.chance.random() < 0.5:
            self.executor.move(self.chance.randrange(len(self.executor.moves)))
        elif ready:
            allocation = self.chance.choice(ready)
            self.under_way.remove(allocation)
            self.store.finish(allocation)

    def hand_over(self) -> None:
        if handles := self.held():
            handle, owner = self.chance.choice(handles), self.owner()
            self.store.retain(handle, owner)
            self.references[handle][owner] += 1

    def release(self) -> None:
        if handles := self.held():
            handle = self.chance.choice(handles)
            owner = self.chance.choice([owner for owner, count in self.references[handle].items() if count])
            self.store.release(handle, owner)
            self.references[handle][owner] -= 1

    def held(self) -> list[Handle]:
        return [handle for handle, references in self.references.items() if references.total()]

    def kill(self) -> None:
        """Kill a client or an execution. What it was running is aborted."""
        killed = self.owner()
        self.store.drop_owner(killed)
        for references in self.references.values():
            for owner in list(references):
                if killed.covers(owner):
                    del references[owner]
        assert self.store.owned_bytes(killed) == 0
        for allocation in [found for found in self.under_way if killed.covers(found.owner)]:
            if allocation.is_ready:
                self.store.finish(allocation)
        self.under_way = [
            allocation
            for allocation in self.under_way
            if allocation.state in (AllocationState.STALLED, AllocationState.MOVING, AllocationState.READY)
        ]

    def check(self) -> None:
        """Hold the store against the books."""
        self.executor.take()
        self.under_way = [found for found in self.under_way if found.state is not AllocationState.CANCELLED]
        used_bytes: Counter[int] = Counter()
        for memory, size_bytes in self.occupied:
            used_bytes[memory] += size_bytes
        for handle, shard in list(self.sizes_bytes):
            if handle in self.store and self.is_known(handle, shard):
                place = self.store.memory_of(handle, shard)
                if place is not None:
                    used_bytes[place] += self.sizes_bytes[handle, shard]
            elif handle not in self.store:
                assert not self.references[handle].total()
                del self.sizes_bytes[handle, shard]
        for move in self.executor.moves:
            used_bytes[move.destination] += move.size_bytes
        for memory, capacity_bytes in BUDGETS_BYTES.items():
            assert self.store.used_bytes(memory) == used_bytes[memory] <= capacity_bytes
        self.references = {handle: self.references[handle] for handle, _ in self.sizes_bytes}
        in_use = {
            shard.buffer.handle for allocation in self.under_way for shard in (*allocation.outputs, *allocation.inputs)
        } | {move.handle for move in self.executor.moves}
        for handle in self.store:
            assert self.references[handle].total() or self.is_aborting or handle in in_use, f"{handle} leaks"
        self.check_progress()

    @property
    def is_aborting(self) -> bool:
        """Whether cancelled allocations still wait for moves, with buffers that only they need."""
        return bool(self.executor.moves)

    def check_progress(self) -> None:
        """Where nothing is under way, the allocation that waits longest lacks bytes that are really not there."""
        running = [found for found in self.under_way if found.state is not AllocationState.STALLED]
        if self.executor.moves or running or self.occupied or not self.under_way:
            return
        missing_bytes = self.under_way[0].missing_bytes()
        assert any(
            size_bytes > BUDGETS_BYTES[memory] - self.store.used_bytes(memory)
            for memory, size_bytes in missing_bytes.items()
        )

    def wind_up(self) -> None:
        """Let everything end, and drop all clients."""
        for client in "abcd":
            self.store.drop_owner(Owner(client))
        for allocation in self.under_way:
            if allocation.is_ready:
                self.store.finish(allocation)
        while self.occupied:
            self.vacate()
        self.executor.take()
        while self.executor.moves:
            self.executor.move()
        assert [self.store.used_bytes(memory) for memory in BUDGETS_BYTES] == [0, 0, 0]
        assert list(self.store) == []
        assert self.store.num_stalled == 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_ten_thousand_kills_leave_budgets_exact(part: int) -> None:
    cluster = Cluster(part)
    actions = [cluster.compute] * 5 + [cluster.end_one] * 4 + [cluster.hand_over, cluster.release, cluster.release]
    actions += [cluster.occupy, cluster.vacate, cluster.vacate]
    num_spilled = num_stalled = 0
    for _ in range(NUM_KILLS // NUM_PARTS):
        for _ in range(cluster.chance.randint(1, 30)):
            cluster.chance.choice(actions)()
            num_stalled += cluster.store.num_stalled > 0
        cluster.check()
        num_spilled += any(move.destination == HOST for move in cluster.executor.moves)
        cluster.kill()
        cluster.check()
    assert num_spilled > 100  # the test is about something
    assert num_stalled > 1_000
    cluster.wind_up()
