"""The byte budget of a memory, what waits for bytes of it, and what may be spilled from it."""

from collections import deque
from collections.abc import Container

from runtime.store.allocations import Allocation
from runtime.store.buffers import Shard


class Memory:
    """One memory of the host.

    Attributes:
        number: The device, or HOST.
        capacity_bytes: The budget.
        used_bytes: Bytes of the shards in it, of those on the way into it, and of those on the way out.
        leaving_bytes: Of these, the bytes of shards on the way out.
        waiting: Allocations that wait for a turn here, in order of arrival.
        idle: Shards that no computation uses, least recently used first; a dict for its order.
    """

    __slots__ = ("capacity_bytes", "idle", "leaving_bytes", "number", "used_bytes", "waiting")

    def __init__(self, number: int, capacity_bytes: int) -> None:
        self.number = number
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.leaving_bytes = 0
        self.waiting: deque[Allocation] = deque()
        self.idle: dict[Shard, None] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes that may be allocated at once."""
        return self.capacity_bytes - self.used_bytes

    def victims(self, wanted_bytes: int, room_bytes: int, kept: Container[Shard]) -> list[Shard]:
        """Return the idle shards to spill so that, with what is leaving, this many bytes come free.

        Args:
            wanted_bytes: The bytes wanted.
            room_bytes: The bytes that the spilled shards may take elsewhere.
            kept: Shards that are to stay.

        Returns:
            The least recently used ones that fit; none where they would not suffice, or what is leaving does.
        """
        missing_bytes = wanted_bytes - self.free_bytes - self.leaving_bytes
        found: list[Shard] = []
        for shard in self.idle:
            if missing_bytes <= 0:
                break
            if 0 < shard.size_bytes <= room_bytes and shard not in kept:
                found.append(shard)
                room_bytes -= shard.size_bytes
                missing_bytes -= shard.size_bytes
        return found if missing_bytes <= 0 else []
