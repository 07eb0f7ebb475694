"""How loaded the network between islands is: the server asks the controllers for it again and again, beside all else.

While no controller answers, or one refuses, nothing is known, and slices are placed by static balance alone.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, cycle, islice
from math import inf
from statistics import fmean

from hostlib import Client, Nic, NicPair, PathLoad, RefusedError
from hostlib.messages import MAX_PAIRS_PER_CALL
from runtime.resources.path_loads import PathLoads
from runtime.server.hosts import Host

_LOG = logging.getLogger(__name__)

_ASKS_EVERY_S = 3.0
_MOST_PAIRS = MAX_PAIRS_PER_CALL // 2
"""Of NICs, asked for in both directions: as many as one call has room for, so that announcements are not held up."""
_DIGITS = 1
"""Loads that differ by less than a tenth of a rate mostly count as equal: they change from second to second."""

Questions = Sequence[tuple[frozenset[str], NicPair]]
"""Pairs of NICs, with the islands that they are on."""


class PathLoadQueries:
    """Asks how loaded the paths are between islands whose hosts are on a network.

    Args:
        client: Of the controllers; open for as long as this.
        hosts: Those that are connected, by number.
        tell: Takes what is known from then on.
    """

    def __init__(self, client: Client, hosts: Mapping[int, Host], tell: Callable[[PathLoads], None]) -> None:
        self._client = client
        self._hosts = hosts
        self._tell = tell
        self._refusal = ""
        self._asking: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to ask."""
        self._asking = asyncio.get_running_loop().create_task(self._ask_again_and_again())

    def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _ask_again_and_again(self) -> None:
        while True:
            try:
                loads = await self._ask()
            except Exception:
                _LOG.exception("the loads of the network are not known until the next answer")
                loads = PathLoads()
            self._tell(loads)
            await asyncio.sleep(_ASKS_EVERY_S)

    async def _ask(self) -> PathLoads:
        try:
            asked = questions(self._hosts.values())
            loads = await self._client.path_loads([pair for _, pair in asked], _ASKS_EVERY_S) if asked else ()
        except (RefusedError, ValueError) as error:  # names may be none that a host can have
            if str(error) != self._refusal:
                self._refusal = str(error)
                _LOG.warning("slices are placed without regard to the network: %s", error)
            return PathLoads()
        if loads is None:
            return PathLoads()
        self._refusal = ""
        return between(asked, loads)


def questions(hosts: Iterable[Host]) -> Questions:
    """Return which NICs to ask for: between two islands each host's with one of the other's, there and back.

    Where these are too many, only some hosts of each island count; there are none for very many islands.
    """
    nics: dict[str, list[Nic]] = {}
    for host in hosts:
        if host.network_host is not None and not host.is_leaving:
            nics.setdefault(host.island, []).append(Nic(host.network_host.name, host.network_host.nic))
    neighbours = tuple(combinations(nics, 2))
    each = _MOST_PAIRS // max(len(neighbours), 1)
    return [
        (frozenset((one, other)), pair)
        for one, other in neighbours
        for here, there in islice(_in_turn(nics[one], nics[other]), each)
        if here.host != there.host
        for pair in (NicPair(here, there), NicPair(there, here))
    ]


def between(asked: Questions, loads: Sequence[PathLoad]) -> PathLoads:
    """Return how loaded the paths between islands are, as means over the pairs of NICs that have a path."""
    by_islands: dict[frozenset[str], list[float]] = {}
    for (islands, _), found in zip(asked, loads, strict=True):
        known = by_islands.setdefault(islands, [])
        if found.load is not None:
            known.append(found.load)
    return PathLoads({islands: round(fmean(known), _DIGITS) if known else inf for islands, known in by_islands.items()})


def _in_turn(nics: Sequence[Nic], others: Sequence[Nic]) -> Iterable[tuple[Nic, Nic]]:
    """Return each NIC of both with one of the other, those of the fewer more than once."""
    return islice(zip(cycle(nics), cycle(others), strict=False), max(len(nics), len(others)))
