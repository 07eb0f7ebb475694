"""What transfers send, as strands: flows of one transfer that cross the same contended links, and all that go alike.

Strands that no order of transfers can tell from one another go alike: as many flows and bytes, on links that are
as fast and crossed by strands which go alike again (the coarsest equitable partition, found by colour refinement). On a
Clos that leaves one strand for all the aggregation switches on which jobs meet in the same way.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

from policies.flow_arrays import FloatArray, IntArray
from policies.job import Job
from policies.trainyard.contention import Contention
from policies.trainyard.ways import Ways


@dataclass(frozen=True, slots=True, eq=False)
class Strands:
    """Strands of all transfers of jobs that contend, one for all that go alike.

    Those of transfer u are the ones from ``first_strand[u]`` on. Strand s takes ``own_s[s]`` at least; it needs link
    ``links[n]``, together with those that go alike, for ``seconds[n]``, and there they are ``flows[n]`` flows, n from
    ``first_entry[s]`` on: all of these links at once.
    """

    first_strand: IntArray
    own_s: FloatArray
    first_entry: IntArray
    links: IntArray
    flows: FloatArray
    seconds: FloatArray
    num_links: int

    @classmethod
    def of(cls, jobs: Sequence[Job], ways: Mapping[str, Ways], contention: Contention, rates_bps: FloatArray) -> Self:
        """Of jobs on the paths that they have; contended are the links in the fabric that ``contention`` has."""
        strands = _without_idle(_strands(jobs, ways, frozenset(contention.in_fabric.tolist())), contention)
        on_link = _on_link(strands)
        of_strand, of_link = _alike(strands, on_link, rates_bps)
        first_of = {colour: number for number, colour in reversed(list(enumerate(of_strand)))}
        number_of = {colour: number for number, colour in enumerate(dict.fromkeys(of_link.values()))}
        one_of = {of_link[link]: link for link in reversed(of_link)}
        first_strand, first_entry, links, flows = [0], [0], list[int](), list[int]()
        own_s, seconds = list[float](), list[float]()
        for number in sorted(first_of.values()):
            strand = strands[number]
            while len(first_strand) <= strand.transfer:
                first_strand.append(len(own_s))
            own_s.append(strand.own_s)
            for colour in dict.fromkeys(of_link[link] for link in strand.links):
                link = one_of[colour]
                alike = [strands[other] for other in on_link[link] if of_strand[other] == of_strand[number]]
                links.append(number_of[colour])
                flows.append(sum(other.flows for other in alike))
                seconds.append(sum(other.bits for other in alike) / rates_bps[link])
            first_entry.append(len(links))
        while len(first_strand) <= len(contention.group_of):
            first_strand.append(len(own_s))
        return cls(
            np.array(first_strand),
            np.array(own_s, dtype=np.float64),
            np.array(first_entry),
            np.array(links, dtype=np.int64),
            np.array(flows, dtype=np.float64),
            np.array(seconds, dtype=np.float64),
            len(number_of),
        )


class _Strand(NamedTuple):
    """So many flows of a transfer on the same contended links; on others that they cross they take ``own_s``."""

    transfer: int
    links: tuple[int, ...]
    flows: int
    bits: float
    own_s: float


def _strands(jobs: Sequence[Job], ways: Mapping[str, Ways], contended: frozenset[int]) -> list[_Strand]:
    """In order of their transfers."""
    found, first = [], 0
    for job in jobs:
        way = ways[job.name]
        links, seconds = iter(way.links.tolist()), iter(way.seconds.tolist())
        occupied_s = [dict(islice(zip(links, seconds, strict=True), count)) for count in way.num_links.tolist()]
        of_transfers: list[dict[tuple[int, ...], tuple[int, float, float]]] = [{} for _ in occupied_s]
        inside = iter(job.arrays.host_links.tolist())
        sizes, transfers = job.arrays.size_bytes.tolist(), job.windows.transfer_of.tolist()
        by_flow = zip(sizes, transfers, way.paths, job.arrays.num_host_links.tolist(), strict=True)
        for size_bytes, transfer, path, num_inside in by_flow:
            crossed = (*path, *islice(inside, num_inside))
            if size_bytes:
                shared = tuple(link for link in crossed if link in contended)
                alone_s = max((occupied_s[transfer][link] for link in crossed if link not in contended), default=0.0)
                flows, bits, own_s = of_transfers[transfer].get(shared, (0, 0.0, 0.0))
                of_transfers[transfer][shared] = flows + 1, bits + size_bytes * 8, max(own_s, alone_s)
        for number, strands in enumerate(of_transfers, first):
            found += [_Strand(number, shared, *of_strand) for shared, of_strand in strands.items()]
        first += len(of_transfers)
    return found


def _on_link(strands: Sequence[_Strand]) -> dict[int, list[int]]:
    """Numbers of the strands that cross each link."""
    on_link: dict[int, list[int]] = {}
    for number, strand in enumerate(strands):
        for link in strand.links:
            on_link.setdefault(link, []).append(number)
    return on_link


def _without_idle(strands: Sequence[_Strand], contention: Contention) -> list[_Strand]:
    """Without strands that cross one link, as all others on it, which another link outlasts whoever is served."""
    lasting = set(contention.lasting.tolist())
    idle = {
        link
        for link, on in _on_link(strands).items()
        if link not in lasting and all(len(strands[number].links) == 1 for number in on)
    }
    return [strand for strand in strands if idle.isdisjoint(strand.links)]


def _alike(
    strands: Sequence[_Strand], on_link: Mapping[int, Sequence[int]], rates_bps: FloatArray
) -> tuple[list[int], dict[int, int]]:
    """Colours of strands and of links, the same for those that go alike."""
    of_strand = _numbered((strand.transfer, strand.flows, strand.bits, strand.own_s) for strand in strands)
    while True:
        seen = {
            link: (rates_bps[link], *sorted(Counter(of_strand[number] for number in on).items()))
            for link, on in on_link.items()
        }
        of_link = dict(zip(seen, _numbered(seen.values()), strict=True))
        refined = _numbered(
            (colour, tuple(of_link[link] for link in strand.links))
            for colour, strand in zip(of_strand, strands, strict=True)
        )
        if len(set(refined)) == len(set(of_strand)):
            return of_strand, of_link
        of_strand = refined


def _numbered(things: Iterable[Hashable]) -> list[int]:
    """The same number for the same things, in the order in which they come."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things]
