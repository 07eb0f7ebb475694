"""Bundles of flows: what the fluid model sends.

A bundle is the flows of one transfer that cross the same contended links. Two bundles are equivalent where no order of
transfers can make a difference between them: they have as many flows and bytes, on links of the same rate that are
crossed by equivalent bundles. These classes are the coarsest equitable partition of the graph of bundles and links, and
colour refinement finds it. The model keeps one bundle of each class. On a Clos, that leaves one bundle for all
aggregation switches on which jobs meet in the same way.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.job import Job
from policies.trainyard.contention import Contention
from policies.trainyard.path_choice import PathChoice


@dataclass(frozen=True, slots=True, eq=False)
class FlowBundles:
    """The bundles of all transfers of contending jobs, one of each class of equivalent bundles.

    A bundle needs all of its links at once.

    Attributes:
        first_bundle: Transfer u has the bundles from ``first_bundle[u]`` up to ``first_bundle[u + 1]``.
        own_s: By bundle, the least time that it takes, on links that only its job uses.
        first_entry: Bundle b has the entries from ``first_entry[b]`` up to ``first_entry[b + 1]``.
        links: By entry, a link that the bundle crosses.
        flows: By entry, the number of flows on this link of all equivalent bundles.
        seconds: By entry, how long all equivalent bundles occupy this link.
        num_links: How many links there are; equivalent links count as one.
    """

    first_bundle: IntArray
    own_s: FloatArray
    first_entry: IntArray
    links: IntArray
    flows: FloatArray
    seconds: FloatArray
    num_links: int

    @classmethod
    def of(
        cls, jobs: Sequence[Job], paths: Mapping[str, PathChoice], contention: Contention, rates_bps: FloatArray
    ) -> Self:
        """Return the bundles of jobs on these paths; the contended links are the shared ones of ``contention``."""
        bundles = _without_dominated(_find_bundles(jobs, paths, frozenset(contention.in_fabric.tolist())), contention)
        on_link = _on_link(bundles)
        of_bundle, of_link = _classes(bundles, on_link, rates_bps)
        first_of = {colour: number for number, colour in reversed(list(enumerate(of_bundle)))}
        number_of = {colour: number for number, colour in enumerate(dict.fromkeys(of_link.values()))}
        one_of = {of_link[link]: link for link in reversed(of_link)}
        first_bundle, first_entry, links, flows = [0], [0], list[int](), list[int]()
        own_s, seconds = list[float](), list[float]()
        for number in sorted(first_of.values()):
            bundle = bundles[number]
            while len(first_bundle) <= bundle.transfer:
                first_bundle.append(len(own_s))
            own_s.append(bundle.own_s)
            for colour in dict.fromkeys(of_link[link] for link in bundle.links):
                link = one_of[colour]
                equivalent = [bundles[other] for other in on_link[link] if of_bundle[other] == of_bundle[number]]
                links.append(number_of[colour])
                flows.append(sum(other.flows for other in equivalent))
                seconds.append(sum(other.bits for other in equivalent) / rates_bps[link])
            first_entry.append(len(links))
        while len(first_bundle) <= len(contention.group_of):
            first_bundle.append(len(own_s))
        return cls(
            np.array(first_bundle),
            np.array(own_s, dtype=np.float64),
            np.array(first_entry),
            np.array(links, dtype=np.int64),
            np.array(flows, dtype=np.float64),
            np.array(seconds, dtype=np.float64),
            len(number_of),
        )


class _Bundle(NamedTuple):
    """Flows of one transfer on the same contended links; links that no other job uses take them ``own_s``."""

    transfer: int
    links: tuple[int, ...]
    flows: int
    bits: float
    own_s: float


def _find_bundles(jobs: Sequence[Job], paths: Mapping[str, PathChoice], contended: frozenset[int]) -> list[_Bundle]:
    """Return all bundles in order of their transfers."""
    found, first = [], 0
    for job in jobs:
        choice = paths[job.name]
        links, seconds = iter(choice.links.tolist()), iter(choice.seconds.tolist())
        occupied_s = [dict(islice(zip(links, seconds, strict=True), count)) for count in choice.num_links.tolist()]
        of_transfers: list[dict[tuple[int, ...], tuple[int, float, float]]] = [{} for _ in occupied_s]
        inside = iter(job.arrays.host_links.tolist())
        sizes, transfers = job.arrays.size_bytes.tolist(), job.transfers.transfer_of.tolist()
        by_flow = zip(sizes, transfers, choice.paths, job.arrays.num_host_links.tolist(), strict=True)
        for size_bytes, transfer, path, num_inside in by_flow:
            crossed = (*path, *islice(inside, num_inside))
            if size_bytes:
                shared = tuple(link for link in crossed if link in contended)
                alone_s = max((occupied_s[transfer][link] for link in crossed if link not in contended), default=0.0)
                flows, bits, own_s = of_transfers[transfer].get(shared, (0, 0.0, 0.0))
                of_transfers[transfer][shared] = flows + 1, bits + size_bytes * 8, max(own_s, alone_s)
        for number, bundles in enumerate(of_transfers, first):
            found += [_Bundle(number, shared, *of_bundle) for shared, of_bundle in bundles.items()]
        first += len(of_transfers)
    return found


def _on_link(bundles: Sequence[_Bundle]) -> dict[int, list[int]]:
    """Return by link the numbers of the bundles that cross it."""
    on_link: dict[int, list[int]] = {}
    for number, bundle in enumerate(bundles):
        for link in bundle.links:
            on_link.setdefault(link, []).append(number)
    return on_link


def _without_dominated(bundles: Sequence[_Bundle], contention: Contention) -> list[_Bundle]:
    """Return the bundles without those that cannot be a bottleneck.

    These cross a single link that another link dominates, and so does every other bundle on that link.
    """
    undominated = set(contention.undominated_links.tolist())
    dropped = {
        link
        for link, on in _on_link(bundles).items()
        if link not in undominated and all(len(bundles[number].links) == 1 for number in on)
    }
    return [bundle for bundle in bundles if dropped.isdisjoint(bundle.links)]


def _classes(
    bundles: Sequence[_Bundle], on_link: Mapping[int, Sequence[int]], rates_bps: FloatArray
) -> tuple[list[int], dict[int, int]]:
    """Return the classes of bundles, and of links, by colour refinement."""
    of_bundle = _numbered((bundle.transfer, bundle.flows, bundle.bits, bundle.own_s) for bundle in bundles)
    while True:
        seen = {
            link: (rates_bps[link], *sorted(Counter(of_bundle[number] for number in on).items()))
            for link, on in on_link.items()
        }
        of_link = dict(zip(seen, _numbered(seen.values()), strict=True))
        refined = _numbered(
            (colour, tuple(of_link[link] for link in bundle.links))
            for colour, bundle in zip(of_bundle, bundles, strict=True)
        )
        if len(set(refined)) == len(set(of_bundle)):
            return of_bundle, of_link
        of_bundle = refined


def _numbered(things: Iterable[Hashable]) -> list[int]:
    """Return a number for each thing, the same for equal things, in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things]
