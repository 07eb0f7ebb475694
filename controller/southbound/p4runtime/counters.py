"""Read the counters of P4 switches: of jobs, of levels and of links."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.counter_reading import (
    JOB_COUNTERS,
    CounterEntry,
    bytes_of_jobs,
    bytes_of_links,
    level_counters,
    link_counters,
)
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError
from topologies.fabric import Fabric


class SwitchCounters:
    """The counters of these switches, read through ``accesses``, which has those that are connected."""

    def __init__(self, switches: Collection[str], accesses: Mapping[str, SwitchAccess]) -> None:
        self._switches = switches
        self._accesses = accesses

    async def job_bytes(self, switches: Collection[str], fabric: Fabric) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        counted: Counter[tuple[int, str]] = Counter()
        # Ordinary switches have no counters of jobs.
        wanted = dict.fromkeys((name for name in switches if name in self._switches), JOB_COUNTERS)
        for answer in await self._read(wanted):
            if answer is None:
                return None
            for traffic, count in bytes_of_jobs(answer[1], fabric):
                counted[traffic] += count
        return counted

    async def level_bytes(self, level: int, fabric: Fabric) -> Mapping[int, int] | None:
        """See Counters."""
        wanted = {name: level_counters(name, level, fabric) for name in self._switches}
        counted: dict[int, int] = {}
        for answer in await self._read(wanted):
            if answer is None:
                return None
            counted.update(bytes_of_links(answer[1], answer[0], fabric))
        return counted

    async def link_bytes(self, links: Collection[int], fabric: Fabric) -> Mapping[int, int]:
        """See LinkCounters."""
        switches = dict.fromkeys(fabric.links[link].source for link in links)
        wanted = {name: link_counters(name, links, fabric) for name in switches if name in self._switches}
        counted: Counter[int] = Counter()
        for answer in await self._read(wanted):
            for link, count in () if answer is None else bytes_of_links(answer[1], answer[0], fabric):
                counted[link] += count
        return counted

    async def _read(self, wanted: Mapping[str, Sequence[CounterEntry]]) -> list[tuple[str, list[CounterEntry]] | None]:
        """Read counters from all switches at once; None for each switch that does not answer."""

        async def read(name: str) -> tuple[str, list[CounterEntry]] | None:
            access = self._accesses.get(name)
            if access is None:
                return None
            with suppress(SwitchAwayError, SwitchRefusalError):
                return name, await access.read_counters(wanted[name])
            return None

        return await asyncio.gather(*map(read, wanted))
