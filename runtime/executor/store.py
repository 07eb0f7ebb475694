"""The arrays of a host that clients hold by handles."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from runtime.executor.computations import Array
from runtime.executor.memory import HostMemory, Reservation
from runtime.messages import Failure, ShareOn
from runtime.store.buffers import Handle

Found = Array | Failure


@dataclass(slots=True)
class _Shard:
    """A shard that is there, has failed, or is still expected; ``awaited`` is room that it waits for."""

    found: Found | None = None
    awaited: Reservation | None = None
    waiting: list[Callable[[Found], None]] = field(default_factory=list)


class HostStore:
    """Shards by client, handle and number. They are expected before they are computed, so that others can wait.

    What is released is forgotten at once. Those who wait for it, and computations that take it, keep it until they have
    done with it.
    """

    def __init__(self, memory: HostMemory) -> None:
        self.memory = memory
        self._shards: dict[tuple[int, int], dict[int, _Shard]] = {}
        self._kept: set[tuple[int, int]] = set()
        self._names: dict[tuple[int, int], Handle] = {}

    @property
    def handles(self) -> int:
        """Handles that have shards here."""
        return len(self._shards)

    @property
    def size_bytes(self) -> int:
        """Bytes of all shards that are there."""
        found = {id(each): each.found for shards in self._shards.values() for each in shards.values()}
        return sum(each.nbytes for each in found.values() if each is not None and not isinstance(each, Failure))

    def keep(self, client: int, handle: int) -> None:
        """Note that the memory of an array is reserved, which the client holds from now on unless it was forgotten."""
        key = (client, handle)
        if key in self._shards and key not in self._kept:
            self.memory.keep(client, self.name_of(client, handle))
            self._kept.add(key)

    def name_of(self, client: int, handle: int) -> Handle:
        """Return by which name the memory knows an array: that of the client that it was shared by, if it was."""
        return self._names.get((client, handle)) or handle_of(client, handle)

    def share(self, message: ShareOn) -> None:
        """Let a reader hold what a client holds, as far as it is here, and let nobody change it any more."""
        held, reader = (message.client, message.handle), (message.reader, message.reader_handle)
        shards = self._shards.get(held, {})
        for each in shards.values():
            if each.found is not None and not isinstance(each.found, Failure):
                each.found.flags.writeable = False
        if shards:
            self._shards.setdefault(reader, {}).update(shards)
        if held in self._kept and reader not in self._kept:
            self._names[reader] = self.name_of(*held)
            self.memory.keep(message.reader, self._names[reader])
            self._kept.add(reader)

    def adopt(
        self, client: int, handle: int, shard: int, size_bytes: int, device: int, on_ready: Callable[[], None]
    ) -> tuple[Reservation, bool]:
        """Reserve memory for a shard that a client holds and that comes from elsewhere; see ``HostMemory.reserve``."""
        name = self.name_of(client, handle)
        if self.memory.holds(name, shard):  # it was to come before, for another client
            reserved = self.memory.reserve(client, None, device, (), [(name, shard)], (), on_ready)
        else:
            reserved = self.memory.reserve(client, None, device, [(name, shard, size_bytes)], (), (), on_ready)
        self._kept.add((client, handle))
        return reserved

    def expect(self, client: int, handle: int, shard: int) -> None:
        """Say that a shard will come."""
        self._shards.setdefault((client, handle), {})[shard] = _Shard()

    def is_expected(self, client: int, handle: int, shard: int) -> bool:
        """Return whether a shard is to come that nobody has released."""
        entry = self._shards.get((client, handle), {}).get(shard)
        return entry is not None and entry.found is None

    def await_room(self, client: int, handle: int, shard: int, reservation: Reservation) -> None:
        """Note that a shard that is expected waits for room, which the client holds from now on.

        It is given up where the shard fails or is released.
        """
        self._shards[client, handle][shard].awaited = reservation
        self._kept.add((client, handle))

    def _end_wait(self, client: int, entry: _Shard) -> None:
        """End the reservation of a shard: it is there, and may be spilled, or will not be."""
        reservation, entry.awaited = entry.awaited, None
        if reservation is not None:
            self.memory.finish(client, None, reservation)

    def put(self, client: int, handle: int, shard: int, found: Found) -> None:
        """Fill a shard that is expected, if nobody has released it meanwhile, and give it to those who wait."""
        entry = self._shards.get((client, handle), {}).get(shard)
        if entry is not None and entry.found is None:
            entry.found = found
            self._end_wait(client, entry)
            waiting, entry.waiting = entry.waiting, []
            for give in waiting:
                give(found)

    def when_there(self, client: int, handle: int, shard: int, give: Callable[[Found], None]) -> None:
        """Call ``give`` with a shard, now or once it is there."""
        entry = self._shards.get((client, handle), {}).get(shard)
        if entry is None:
            give(Failure("LostError", f"array {handle}: its shard {shard} is not on this host"))
        elif entry.found is None:
            entry.waiting.append(give)
        else:
            give(entry.found)

    def release(self, client: int, handles: Iterable[int]) -> None:
        """Forget arrays. Shards that are still expected, and waited for, come and then go."""
        for handle in handles:
            shards = self._shards.get((client, handle), {})
            waited_for = {number: each for number, each in shards.items() if each.waiting}
            if waited_for:
                for number, each in waited_for.items():
                    each.waiting.append(partial(self._forget, client, handle, number))
            for number in shards.keys() - waited_for.keys():
                self._forget(client, handle, number)

    def forget(self, client: int, handle: int, shards: Iterable[int]) -> None:
        """Forget some shards of an array."""
        for shard in shards:
            self._forget(client, handle, shard)

    def _forget(self, client: int, handle: int, shard: int, _: Found | None = None) -> None:
        shards = self._shards.get((client, handle), {})
        entry = shards.pop(shard, None)
        if entry is not None:
            self._end_wait(client, entry)
        if not shards:
            self._shards.pop((client, handle), None)
            if (client, handle) in self._kept:
                self._kept.remove((client, handle))
                self.memory.release(client, self.name_of(client, handle))
            self._names.pop((client, handle), None)

    def drop_client(self, client: int, failure: Failure) -> None:
        """Forget all arrays of a client; those who wait for one get ``failure``."""
        for key in [each for each in self._shards if each[0] == client]:
            for entry in self._shards.pop(key).values():
                for give in entry.waiting:
                    give(failure)
        self._kept = {each for each in self._kept if each[0] != client}
        self._names = {key: name for key, name in self._names.items() if key[0] != client}
        self.memory.drop(client)


def handle_of(client: int, number: int) -> Handle:
    """Return the name of a client's array in the memory."""
    return Handle(str(client), number)
