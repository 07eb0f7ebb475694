import pytest

from runtime.store.allocations import Allocation, AllocationState
from runtime.store.buffers import HOST, Handle, InputShard, NewShard, Owner
from runtime.store.errors import ConflictError, StoreError, TooLargeError, UnknownHandleError, UnknownMemoryError
from runtime.store.object_store import ObjectStore
from tests.runtime.store.executor import Executor

A, B = Owner("a"), Owner("b")
A1, A2 = Owner("a", 1), Owner("a", 2)


def new(number: int, size_bytes: int, memory: int = 0, *, client: str = "a", shard: int = 0) -> NewShard:
    return NewShard(Handle(client, number), shard, size_bytes, memory)


def taken(number: int, memory: int = 0, *, client: str = "a", shard: int = 0) -> InputShard:
    return InputShard(Handle(client, number), shard, memory)


def put(store: ObjectStore, owner: Owner, *shards: NewShard) -> None:
    """Allocate shards, and let the computation that writes them end."""
    allocation = store.allocate(owner, shards)
    assert allocation.is_ready
    store.finish(allocation)


def states(*allocations: Allocation) -> list[bool]:
    return [allocation.is_ready for allocation in allocations]


def test_allocation_counts_against_the_budget_until_the_last_reference_goes() -> None:
    store = ObjectStore({0: 10, HOST: 10})
    put(store, A, new(1, 4), new(1, 3, shard=1))
    store.retain(Handle("a", 1), B)
    store.retain(Handle("a", 1), B)
    assert store.used_bytes(0) == 7
    assert (store.owned_bytes(A), store.owned_bytes(B)) == (7, 0)
    store.release(Handle("a", 1), A)
    assert (store.owned_bytes(A), store.owned_bytes(B)) == (0, 7)
    store.release(Handle("a", 1), B)
    assert store.used_bytes(0) == 7
    store.release(Handle("a", 1), B)
    assert store.used_bytes(0) == 0
    assert Handle("a", 1) not in store


def test_stalled_allocations_wake_in_order_and_small_ones_do_not_pass() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    executor = Executor(store)
    put(store, A, new(1, 6))
    put(store, A, new(2, 4))
    large = store.allocate(B, [new(1, 7, client="b")])
    small = store.allocate(B, [new(2, 2, client="b")])
    store.release(Handle("a", 2), A)
    assert states(large, small) == [False, False]
    assert store.num_stalled == 2
    store.release(Handle("a", 1), A)
    executor.take()
    assert executor.ready == [large, small]
    assert store.used_bytes(0) == 9


def test_what_names_no_buffer_passes_nobody_who_waits() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    executor = Executor(store)
    assert store.occupy(0, 6)
    assert not store.occupy(0, 5)
    waiting = store.allocate(A, [new(1, 5)])
    assert not store.occupy(0, 1)
    assert store.used_bytes(0) == 6
    store.vacate(0, 6)
    executor.take()
    assert executor.ready == [waiting]
    assert store.occupy(0, 5)
    with pytest.raises(UnknownMemoryError, match="device 1: is not of this host"):
        store.occupy(1, 1)


def test_an_allocation_gets_all_its_memories_or_none() -> None:
    store = ObjectStore({0: 10, 1: 10, HOST: 0})
    put(store, A, new(1, 10, 1))
    both = store.allocate(A, [new(2, 5, 0), new(2, 5, 1, shard=1)])
    assert not both.is_ready
    assert store.used_bytes(0) == 0
    behind = store.allocate(A, [new(3, 5, 0)])
    assert not behind.is_ready
    store.release(Handle("a", 1), A)
    assert states(both, behind) == [True, True]


def test_least_recently_used_shards_are_spilled_and_come_back() -> None:
    store = ObjectStore({0: 10, HOST: 100})
    executor = Executor(store)
    for number in (1, 2, 3):
        put(store, A, new(number, 3))
    store.finish(store.allocate(A, inputs=[taken(1)]))  # now 2 is the one not used for longest
    wanted = store.allocate(A, [new(4, 4)])
    assert not wanted.is_ready
    move = executor.move()
    assert (move.handle, move.source, move.destination) == (Handle("a", 2), 0, HOST)
    assert wanted.is_ready
    assert (store.used_bytes(0), store.used_bytes(HOST)) == (10, 3)
    store.finish(wanted)
    back = store.allocate(A, inputs=[taken(2)])
    assert executor.move().handle == Handle("a", 3)
    assert not back.is_ready
    move = executor.move()
    assert (move.handle, move.source, move.destination) == (Handle("a", 2), HOST, 0)
    assert back.is_ready
    assert store.memory_of(Handle("a", 2), 0) == 0
    assert (store.used_bytes(0), store.used_bytes(HOST)) == (10, 3)


def test_both_copies_count_while_a_shard_moves() -> None:
    store = ObjectStore({0: 10, HOST: 100})
    executor = Executor(store)
    put(store, A, new(1, 8))
    store.allocate(A, [new(2, 8)])
    assert (store.used_bytes(0), store.used_bytes(HOST)) == (8, 8)
    assert store.owned_bytes(A) == 16
    executor.move()
    assert executor.freed == [(Handle("a", 1), 0, 0)]
    assert (store.used_bytes(0), store.used_bytes(HOST)) == (8, 8)


def test_nothing_is_spilled_in_vain() -> None:
    store = ObjectStore({0: 10, HOST: 4})
    put(store, A, new(1, 4))
    put(store, A, new(2, 4))
    stalled = store.allocate(A, [new(3, 8)])
    assert not stalled.is_ready
    assert store.take_effects() == []


def test_shards_in_use_are_not_spilled() -> None:
    store = ObjectStore({0: 10, HOST: 100})
    executor = Executor(store)
    put(store, A, new(1, 8))
    using = store.allocate(A, inputs=[taken(1)])
    stalled = store.allocate(A, [new(2, 8)])
    executor.take()
    assert executor.moves == []
    store.finish(using)
    executor.move()
    assert stalled.is_ready


def test_spilling_does_not_take_the_host_from_those_who_wait_for_it() -> None:
    store = ObjectStore({0: 10, HOST: 10})
    put(store, A, new(1, 6, HOST))
    put(store, A, new(2, 4))
    on_host = store.allocate(A, [new(3, 6, HOST)])
    on_device = store.allocate(A, [new(4, 8)])
    assert store.take_effects() == []
    store.release(Handle("a", 1), A)
    assert on_host.is_ready
    Executor(store).move()
    assert on_device.is_ready


def test_inputs_and_outputs_of_an_allocation_stay_until_it_is_finished() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    put(store, A, new(1, 4))
    computation = store.allocate(A, [new(2, 4)], [taken(1)])
    store.release(Handle("a", 1), A)
    store.release(Handle("a", 2), A)
    assert store.used_bytes(0) == 8
    store.finish(computation)
    assert store.used_bytes(0) == 0
    assert list(store) == []


def test_a_shard_moves_to_the_device_that_needs_it_after_others_have_used_it() -> None:
    store = ObjectStore({0: 10, 1: 10, HOST: 0})
    executor = Executor(store)
    put(store, A, new(1, 4))
    here = store.allocate(A, inputs=[taken(1, 0)])
    there = store.allocate(A, inputs=[taken(1, 1)])
    later = store.allocate(A, inputs=[taken(1, 0)])
    executor.take()
    assert executor.moves == []
    assert states(here, there, later) == [True, False, False]
    store.finish(here)
    executor.move()
    assert states(there, later) == [True, False]
    store.finish(there)
    executor.move()
    assert later.is_ready


def test_migration_happens_behind_the_handle() -> None:
    store = ObjectStore({0: 10, 1: 10, HOST: 0})
    executor = Executor(store)
    put(store, A, new(1, 4))
    store.migrate(Handle("a", 1), 0, 1)
    assert store.memory_of(Handle("a", 1), 0) == 0
    executor.move()
    assert store.memory_of(Handle("a", 1), 0) == 1
    assert (store.used_bytes(0), store.used_bytes(1)) == (0, 4)
    store.release(Handle("a", 1), A)
    assert store.used_bytes(1) == 0


def test_dropping_an_owner_frees_exactly_its_bytes() -> None:
    store = ObjectStore({0: 100, HOST: 100})
    put(store, A, new(1, 10))
    put(store, A1, new(2, 20))
    put(store, A2, new(3, 30))
    put(store, B, new(1, 5, client="b"))
    store.retain(Handle("a", 3), B)
    store.drop_owner(A1)
    assert store.used_bytes(0) == 45
    store.drop_owner(A)  # its executions too; what others hold stays
    assert store.used_bytes(0) == 35
    assert store.owned_bytes(B) == 35
    store.drop_owner(A)
    store.drop_owner(B)
    assert store.used_bytes(0) == 0


def test_dropping_an_owner_cancels_what_it_waits_for_and_what_waits_for_that() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    executor = Executor(store)
    put(store, B, new(1, 8, client="b"))
    stalled = store.allocate(A1, [new(1, 8)])
    store.retain(Handle("a", 1), B)
    dependant = store.allocate(B, [new(2, 1, client="b")], [taken(1)])
    behind = store.allocate(B, [new(3, 2, client="b")])
    store.drop_owner(A)
    executor.take()
    assert [allocation for allocation, _ in executor.cancelled] == [stalled, dependant]
    assert "a, execution 1" in executor.cancelled[1][1]
    assert "a/1 shard 0" in executor.cancelled[1][1]
    assert executor.ready == [behind]
    assert store.used_bytes(0) == 10


def test_a_computation_under_way_keeps_its_buffers_after_its_owner_is_gone() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    computation = store.allocate(A1, [new(1, 8)])
    store.drop_owner(A)
    assert store.used_bytes(0) == 8
    with pytest.raises(UnknownHandleError, match="a/1"):
        store.retain(Handle("a", 1), B)
    with pytest.raises(UnknownHandleError, match="a/1: has been released"):
        store.allocate(B, inputs=[taken(1)])
    store.finish(computation)
    assert store.used_bytes(0) == 0


def test_an_owner_dropped_while_inputs_move_frees_both_copies() -> None:
    store = ObjectStore({0: 10, 1: 10, HOST: 0})
    executor = Executor(store)
    put(store, A, new(1, 4))
    moving = store.allocate(A, [new(2, 3, 1)], [taken(1, 1)])
    store.drop_owner(A)
    assert (store.used_bytes(0), store.used_bytes(1)) == (4, 7)
    executor.move()
    assert (store.used_bytes(0), store.used_bytes(1)) == (0, 0)
    assert moving.state is AllocationState.CANCELLED
    assert executor.ready == []
    assert executor.freed == [(Handle("a", 1), 0, 0), (Handle("a", 2), 0, 1), (Handle("a", 1), 0, 1)]


def test_an_allocation_that_is_given_up_lets_others_through() -> None:
    store = ObjectStore({0: 10, HOST: 0})
    put(store, A, new(1, 8))
    given_up = store.allocate(A, [new(2, 8)])
    behind = store.allocate(A, [new(3, 2)])
    store.finish(given_up)
    assert behind.is_ready


def test_requests_that_make_no_sense_are_refused_by_name_and_change_nothing() -> None:
    store = ObjectStore({0: 10, 1: 5, HOST: 20})
    put(store, A, new(1, 4))
    refused: list[tuple[type[StoreError], str, Owner, list[NewShard], list[InputShard]]] = [
        (TooLargeError, "a/2 shard 0: 11 bytes exceed the 10 of device 0", A, [new(2, 11)], []),
        (TooLargeError, "a/2 shard 0: 30 bytes exceed the 20 of the host's memory", A, [new(2, 30, HOST)], []),
        (TooLargeError, "a/1 shard 0: 4 bytes, with 7 beside them, exceed", A, [new(2, 7)], [taken(1)]),
        (TooLargeError, "a/3 shard 0: 4 bytes, with 3 beside them,", A, [new(2, 3, 1), new(3, 4, 1)], []),
        (UnknownMemoryError, "a/2 shard 0: device 7", A, [new(2, 1, 7)], []),
        (UnknownHandleError, "a/9: is not in the store", A, [new(2, 1)], [taken(9)]),
        (UnknownHandleError, "a/1 shard 3: is not in the store", A, [new(2, 1)], [taken(1, shard=3)]),
        (ConflictError, "a/1 shard 0: is allocated twice", A, [new(1, 1)], []),
        (ConflictError, "a/2 shard 0: is allocated twice", A, [new(2, 1), new(2, 1)], []),
        (ConflictError, "a/1: is not held by b", B, [new(1, 1, shard=1)], []),
        (ConflictError, "a/2 shard 0: size_bytes: must not be negative", A, [new(2, -1)], []),
        (ConflictError, "a/1 shard 0: is wanted in two memories", A, [], [taken(1, 0), taken(1, 1)]),
        (ConflictError, "a: names no shard", A, [], []),
    ]
    for error, message, owner, outputs, inputs in refused:
        with pytest.raises(error, match=message):
            store.allocate(owner, outputs, inputs)
    assert store.used_bytes(0) == store.owned_bytes(A) == 4
    assert list(store) == [Handle("a", 1)]
    assert store.num_stalled == 0


def test_references_and_moves_that_are_not_there_are_refused_by_name() -> None:
    store = ObjectStore({0: 10, HOST: 20})
    put(store, A, new(1, 4))
    with pytest.raises(UnknownHandleError, match="a/1: b has no reference to it"):
        store.release(Handle("a", 1), B)
    with pytest.raises(UnknownHandleError, match="a/1 shard 0: is not being moved"):
        store.moved(Handle("a", 1), 0)
    with pytest.raises(UnknownMemoryError, match="device 4"):
        store.used_bytes(4)
    computation = store.allocate(A, inputs=[taken(1), taken(1)])  # the same argument twice
    store.finish(computation)
    with pytest.raises(ConflictError, match="allocation of a: has been finished"):
        store.finish(computation)


@pytest.mark.parametrize(("budgets_bytes", "named"), [({0: 5}, "host"), ({0: -5, HOST: 1}, "device 0")])
def test_budgets_must_make_sense(budgets_bytes: dict[int, int], named: str) -> None:
    with pytest.raises(StoreError, match=named):
        ObjectStore(budgets_bytes)
