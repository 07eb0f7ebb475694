"""Arrays of the compiled loops: bundles in the order in which they are served, their state, and scratch space."""

from typing import NamedTuple, Self

import numpy as np

from policies.model.bundles import Bundles
from policies.model.contention import NO_HOP, BoolArray
from policies.model.picoseconds import NEVER_PS
from policies.rates.network import FloatArray, IntArray, Network


class Layout(NamedTuple):
    """Bundles by tier and number, the most urgent first, each with the links of its hops.

    The bundles of a job are ``bundles_of[first_bundle[job]:first_bundle[job + 1]]``.
    """

    first_bundle: IntArray
    bundles_of: IntArray
    job_of: IntArray
    size_bytes: FloatArray
    weights: FloatArray
    tiers: IntArray
    latency_ps: IntArray
    first_hop: IntArray
    links: IntArray
    places: IntArray
    flow_of_hop: IntArray
    capacities_bps: FloatArray

    @classmethod
    def of(cls, num_bundles: IntArray, size_bytes: FloatArray, bundles: Bundles) -> Self:
        """Renumber bundles of these sizes by tier; the first ``num_bundles[0]`` of them belong to job 0."""
        network, by_tier = bundles.network, bundles.tiers.argsort(kind="stable")
        place = np.empty_like(by_tier)
        place[by_tier] = np.arange(len(by_tier))
        num_hops = np.diff(network.starts)[by_tier]
        first_hop = np.concatenate(([0], np.cumsum(num_hops)))
        flow_of_hop = np.repeat(np.arange(len(by_tier)), num_hops)
        hops = np.arange(len(network.links)) + (network.starts[by_tier] - first_hop[:-1])[flow_of_hop]
        return cls(
            first_bundle=np.concatenate(([0], np.cumsum(num_bundles))),
            bundles_of=place,
            job_of=np.repeat(np.arange(len(num_bundles)), num_bundles)[by_tier],
            size_bytes=size_bytes[by_tier],
            weights=bundles.weights[by_tier],
            tiers=bundles.tiers[by_tier],
            latency_ps=bundles.latency_ps[by_tier],
            first_hop=first_hop,
            links=network.links[hops],
            places=network.places[hops] if len(network.places) else network.places,
            flow_of_hop=flow_of_hop,
            capacities_bps=network.capacities_bps,
        )


class Sending(NamedTuple):
    """Remaining bytes of bundles as of ``settled_ps``, their rates and their ends.

    The active bundles are the first ``counts[0]`` in ``active``; the first ``counts[1]`` of them wait for their rates.
    """

    remaining_bytes: FloatArray
    rates_bps: FloatArray
    settled_ps: IntArray
    ends_ps: IntArray
    active: IntArray
    counts: IntArray

    @classmethod
    def of(cls, num_bundles: int) -> Self:
        """Return the state in which no bundle is active."""
        return cls(
            remaining_bytes=np.zeros(num_bundles),
            rates_bps=np.zeros(num_bundles),
            settled_ps=np.zeros(num_bundles, dtype=np.int64),
            ends_ps=np.full(num_bundles, NEVER_PS),
            active=np.zeros(num_bundles, dtype=np.int64),
            counts=np.zeros(2, dtype=np.int64),
        )


class Scratch(NamedTuple):
    """Lists of the bundles on every link (``contention``), and scratch space to search and to fill tiers."""

    first: IntArray
    following: IntArray
    preceding: IntArray
    is_found: BoolArray
    is_seen: BoolArray
    found: IntArray
    seen: IntArray
    touched: IntArray
    starts: IntArray
    stops: IntArray
    left: FloatArray
    weight_on: FloatArray
    unfixed_on: IntArray
    members_end: IntArray
    members: IntArray
    heap: IntArray
    shares: FloatArray
    rates_bps: FloatArray

    @classmethod
    def of(cls, network: Network) -> Self:
        """Return empty lists and scratch space for a network."""
        num_links, num_flows, num_hops = len(network.capacities_bps), network.num_flows, len(network.links)
        return cls(
            first=np.full(num_links, NO_HOP),
            following=np.full(num_hops, NO_HOP),
            preceding=np.full(num_hops, NO_HOP),
            is_found=np.zeros(num_flows, dtype=np.bool_),
            is_seen=np.zeros(num_links, dtype=np.bool_),
            found=np.zeros(num_flows, dtype=np.int64),
            seen=np.zeros(num_links, dtype=np.int64),
            touched=np.zeros(2 * num_flows, dtype=np.int64),
            starts=np.zeros(num_flows, dtype=np.int64),
            stops=np.zeros(num_flows, dtype=np.int64),
            left=np.zeros(num_links),
            weight_on=np.zeros(num_links),
            unfixed_on=np.zeros(num_links, dtype=np.int64),
            members_end=np.zeros(num_links, dtype=np.int64),
            members=np.zeros(num_hops, dtype=np.int64),
            heap=np.zeros(num_links, dtype=np.int64),
            shares=np.zeros(num_links),
            rates_bps=np.zeros(num_flows),
        )
