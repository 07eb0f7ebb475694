"""Coflows on one big switch, as arrays for compiled loops."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from policies.rates.network import FloatArray, IntArray
from workloads.coflow_trace import CoflowTrace

EGRESS = 1
"""Position of the egress port among a flow's two links."""
PORTS_PER_WORD = 32
"""Ports per word of a bit set; the sign bit stays free."""


@dataclass(frozen=True, slots=True, eq=False)
class BigSwitch:
    """Flows on two ports each, and the demand of every coflow on every link.

    Flow ``f`` belongs to coflow ``coflow_of[f]`` and crosses ``links[2 f]``, an ingress port, and ``links[2 f + 1]``,
    an egress port. Coflow ``c`` has *demands* from ``first_demand[c]`` on, one for each of its links,
    ``demand_links[d]``, ingress ports first. ``demands_of[2 f + end]`` are the two demands that flow ``f`` is part of.

    The flows of an egress port's demand start at ``first_flow[d]``. Their ingress ports are a bit set, ``sources[d]``,
    with ``PORTS_PER_WORD`` bits in each word; ``num_before[d]`` counts the bits in earlier words.
    """

    num_links: int
    port_bytes_per_s: float
    starts: IntArray
    first_hop: IntArray
    links: IntArray
    coflow_of: IntArray
    size_bytes: FloatArray
    first_demand: IntArray
    demand_links: IntArray
    demands_of: IntArray
    first_flow: IntArray
    sources: IntArray
    num_before: IntArray

    @classmethod
    def of(cls, trace: CoflowTrace, port_bps: float) -> Self:
        """Build a switch with ports of this rate; links 0 to n - 1 are ingress ports, n to 2 n - 1 egress ports."""
        num_links = 2 * trace.num_ports
        coflow_of = np.repeat(np.arange(len(trace.names)), np.diff(trace.starts))
        links = np.column_stack((trace.sources, trace.num_ports + trace.destinations)).ravel()
        by_demand = np.repeat(coflow_of, 2) * num_links + links
        demands, demands_of = np.unique(by_demand, return_inverse=True)
        into = demands_of[EGRESS::2]
        flags = np.zeros((len(demands), -(-trace.num_ports // PORTS_PER_WORD) * PORTS_PER_WORD), dtype=np.int64)
        flags[into, trace.sources] = 1
        in_words = flags.reshape(len(demands), -1, PORTS_PER_WORD)
        num_in_words = in_words.sum(axis=2)
        return cls(
            num_links=num_links,
            port_bytes_per_s=port_bps / 8,
            starts=trace.starts,
            first_hop=np.arange(0, len(links) + 1, 2),
            links=links,
            coflow_of=coflow_of,
            size_bytes=trace.size_bytes,
            first_demand=np.searchsorted(demands, np.arange(len(trace.names) + 1) * num_links),
            demand_links=demands % num_links,
            demands_of=demands_of,
            first_flow=np.searchsorted(into, np.arange(len(demands))),
            sources=in_words @ (1 << np.arange(PORTS_PER_WORD)),
            num_before=np.cumsum(num_in_words, axis=1) - num_in_words,
        )

    def seconds_by_link(self, coflows: IntArray, demand_bytes: FloatArray) -> csr_array:
        """Return how long these coflows (rows) occupy links (columns), from the remaining bytes of every demand."""
        widths = self.first_demand[coflows + 1] - self.first_demand[coflows]
        ends = np.concatenate(([0], np.cumsum(widths)))
        demands = np.repeat(self.first_demand[coflows] - ends[:-1], widths) + np.arange(ends[-1])
        seconds = demand_bytes[demands] / self.port_bytes_per_s
        table = csr_array((seconds, self.demand_links[demands], ends), shape=(len(coflows), self.num_links))
        table.eliminate_zeros()
        return table
