"""The store of a host: arrays that several clients hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.executor.memory import HostMemory
from runtime.executor.store import HostStore
from runtime.messages import Failure, ShareOn
from runtime.store.buffers import HOST

SIZE_BYTES = 8


def put(store: HostStore, client: int, handle: int, shards: int) -> list["np.ndarray[Any, Any]"]:
    """Let a client hold an array of so many shards, each of 8 bytes on device 0."""
    made = [np.zeros(SIZE_BYTES, np.int8) for _ in range(shards)]
    for shard, array in enumerate(made):
        store.expect(client, handle, shard)
        reservation, has_room = store.adopt(client, handle, shard, SIZE_BYTES, 0, lambda: None)
        assert has_room
        store.put(client, handle, shard, array)
        store.memory.finish(client, None, reservation)
    return made


def new_store() -> HostStore:
    return HostStore(HostMemory({HOST: 0, 0: 1 << 20}))


@given(st.data())
def test_an_array_lives_until_the_last_client_lets_go(data: st.DataObject) -> None:
    store = new_store()
    held: dict[tuple[int, int], list[np.ndarray[Any, Any]]] = {}
    for handle in range(data.draw(st.integers(0, 20))):
        client = data.draw(st.integers(0, 2))
        step = data.draw(st.sampled_from(["put", "share", "share", "release", "drop"]))
        if step == "put":
            held[client, handle] = put(store, client, handle, data.draw(st.integers(1, 3)))
        elif step == "share" and held:
            key = data.draw(st.sampled_from(sorted(held)))
            store.share(ShareOn(*key, client, handle))
            held[client, handle] = held[key]
        elif step == "release" and held:
            key = data.draw(st.sampled_from(sorted(held)))
            store.release(key[0], [key[1]])
            del held[key]
        elif step == "drop":
            store.drop_client(client, Failure("LostError", "gone"))
            held = {key: arrays for key, arrays in held.items() if key[0] != client}
        arrays = {id(array): array for made in held.values() for array in made}
        assert store.handles == len(held)
        assert store.size_bytes == store.memory.used_bytes[0] == SIZE_BYTES * len(arrays)
        for (holder, number), made in held.items():
            found: list[object] = []
            for shard in range(len(made)):
                store.when_there(holder, number, shard, found.append)
            assert all(one is other for one, other in zip(found, made, strict=True))
    for client in range(3):
        store.drop_client(client, Failure("LostError", "gone"))
    assert store.memory.used_bytes == {HOST: 0, 0: 0}


def test_what_is_shared_is_read_only() -> None:
    store = new_store()
    (array,) = put(store, 0, 5, 1)
    array[0] = 1
    store.share(ShareOn(0, 5, 1, 7))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2
