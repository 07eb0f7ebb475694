"""Outputs of which no bound was known: their memory is reserved when they have been computed.

The computation has ended then, and holds neither its device nor memory. Its output **lands**: it is there for others
once there is room for it. So landings wait for computations that came before them, and never the other way round.
"""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.executor.computations import Array
from runtime.executor.memory import Reservation
from runtime.executor.store import HostStore, handle_of
from runtime.messages import Failure, Sized
from runtime.store.errors import StoreError


@dataclass(eq=False, slots=True)
class Landing:
    """A shard of a client's array that has been computed, by a function of a ``name``, on a device."""

    client: int
    handle: int
    shard: int
    device: int
    name: str
    array: Array
    reservation: Reservation | None = None
    has_room: bool = False


class Landings:
    """Lets shards land, and tells the server of how many rows they are."""

    def __init__(self, store: HostStore, tell: Callable[[Sized], None]) -> None:
        self._store = store
        self._tell = tell

    def land(self, landing: Landing) -> None:
        """Reserve the memory of a shard that is expected, and put it into the store once there is room.

        What its device could never hold fails. What is released meanwhile, or fails elsewhere, is forgotten.
        """
        client, handle, shard = landing.client, landing.handle, landing.shard
        if not self._store.is_expected(client, handle, shard):
            return
        output = (handle_of(client, handle), shard, landing.array.nbytes)

        def come() -> None:
            landing.has_room = True
            if landing.reservation is not None:  # else it came while memory was being reserved
                self._end(landing)

        try:
            reserved = self._store.memory.reserve(client, None, landing.device, [output], (), (), come)
        except StoreError as error:
            self._store.put(client, handle, shard, Failure("RefusedError", f"{landing.name}: {error}"))
            self._tell(Sized(client, handle, shard, -1))
            return
        landing.reservation, has_room = reserved
        self._store.await_room(client, handle, shard, landing.reservation)
        if has_room or landing.has_room:
            self._end(landing)

    def _end(self, landing: Landing) -> None:
        client, handle, shard = landing.client, landing.handle, landing.shard
        self._store.put(client, handle, shard, landing.array)
        self._tell(Sized(client, handle, shard, len(landing.array)))
