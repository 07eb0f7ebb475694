"""Read the counters of switches that speak OpenFlow: those of jobs by their flow entries, and those of ports."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from controller.southbound.openflow.access import OpenFlowAccess
from controller.southbound.openflow.growing_counts import GrowingCounts
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError
from topologies.fabric import Fabric

_AnswerT = TypeVar("_AnswerT")

_Place = tuple[str, int]
"""A switch and a port."""


class OpenFlowCounters:
    """The counters of these switches, read through ``accesses``, which has those that are connected."""

    def __init__(self, switches: Collection[str], accesses: Mapping[str, OpenFlowAccess]) -> None:
        self._switches = switches
        self._accesses = accesses
        self._at_levels: defaultdict[int, GrowingCounts[_Place]] = defaultdict(GrowingCounts)

    async def job_bytes(self, switches: Collection[str], fabric: Fabric) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        counted: Counter[tuple[int, str]] = Counter()
        wanted = [name for name in switches if name in self._switches]
        for _, flows in await self._read(wanted, OpenFlowAccess.read_job_flows):
            if flows is None:
                return None
            for flow in flows:
                if flow.entry is None or flow.num_bytes is None:
                    continue
                source, to = flow.entry.key.match.source, flow.entry.key.match.destination
                host = None if to is None else fabric.host_by_prefix.get((to.address, to.mask))
                if source is not None and host is not None:
                    counted[source.address, host] += flow.num_bytes
        return counted

    async def level_bytes(self, level: int, fabric: Fabric) -> Mapping[int, int] | None:
        """See Counters. Only what a job sends that is being measured is counted."""
        found: dict[tuple[_Place, object], int] = {}
        for name, counters in await self._read(list(self._switches), lambda access: access.read_level(level)):
            if counters is None:
                return None
            found |= {((name, counter.port), counter.of): count for counter, count in counters.items()}
        sums = self._at_levels[level].read(found)
        return {link.index: sums[name, link.source_port] for name in self._switches for link in fabric.links_from[name]}

    async def link_bytes(self, links: Collection[int], fabric: Fabric) -> Mapping[int, int]:
        """See LinkCounters."""
        link_at = {(fabric.links[link].source, fabric.links[link].source_port): link for link in links}
        wanted = dict.fromkeys(name for name, _ in link_at if name in self._switches)
        return {
            link_at[name, port.number]: port.sent_bytes
            for name, ports in await self._read(wanted, OpenFlowAccess.read_ports)
            for port in ports or ()
            if port.sent_bytes is not None and (name, port.number) in link_at
        }

    async def _read(
        self, switches: Iterable[str], read: Callable[[OpenFlowAccess], Awaitable[_AnswerT]]
    ) -> list[tuple[str, _AnswerT | None]]:
        """Read from these switches at once; None for each that does not answer."""

        async def read_one(name: str) -> tuple[str, _AnswerT | None]:
            access = self._accesses.get(name)
            if access is not None:
                with suppress(SwitchAwayError, SwitchRefusalError):
                    return name, await read(access)
            return name, None

        return await asyncio.gather(*map(read_one, switches))
