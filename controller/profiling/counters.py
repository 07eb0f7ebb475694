"""What profiling asks of the switches: their counters."""

from collections.abc import Collection, Mapping
from typing import Protocol


class Counters(Protocol):
    """Counters of a fabric's switches, in bytes as counted since any time. None: a switch has not answered."""

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """What these switches' rules for whole jobs have counted, by NIC (its address) and host that it sends to."""

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """What has left by every link of all switches with a level."""
