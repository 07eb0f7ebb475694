"""What in a sound scenario is too large to be planned or run."""

from collections import Counter
from collections.abc import Iterator

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.problem import Problem
from workloads.arrangement import ZeroCommunicationRun
from workloads.jobs import training_jobs
from workloads.scenario import Scenario
from workloads.values import LONGEST_S

LONGEST_RUN_S = 9e6
"""A run's clock counts picoseconds in 63 bits."""

_PORTS = LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1


def problems_of_size(scenario: Scenario) -> Iterator[Problem]:
    """Iterations that would outlast a run's clock, and more flows between two NICs than there are source ports."""
    fabric = scenario.topology.build()
    slowest_bps = min(fabric.rates_bps)
    num_flows: Counter[tuple[str, int, str, int]] = Counter()
    for number, job in enumerate(training_jobs(scenario, fabric)):
        flows = [flow for group in job.graph.flow_groups for flow in group.flows]
        sending_s = sum(flow.size_bytes for flow in flows) * 8 / slowest_bps
        if sending_s > LONGEST_S:
            yield Problem(
                ("jobs", number, "workload"),
                f"expected bytes that the slowest link, {slowest_bps / 1e9:g} Gbit/s, would carry in {LONGEST_S:g} s:"
                f" an iteration's would take {sending_s:.2g} s",
            )
        duration_s = ZeroCommunicationRun.of(job.graph).duration_s * (job.specification.iterations or 1)
        if job.specification.arrival_s + duration_s > LONGEST_RUN_S:
            yield Problem(
                ("jobs", number, "iterations"),
                f"expected a job that ends by {LONGEST_RUN_S:g} s: its computation alone takes {duration_s:.2g} s",
            )
        pairs = [(flow.source_host, flow.source_nic, flow.destination_host, flow.destination_nic) for flow in flows]
        num_flows.update(pairs)
        crowded = next((pair for pair in pairs if num_flows[pair] > _PORTS), None)
        if crowded is not None:
            source, source_nic, destination, destination_nic = crowded
            yield Problem(
                ("jobs", number, "workload"),
                f"expected at most {_PORTS:,} flows from NIC {source_nic} of {source} to NIC {destination_nic} of"
                f" {destination}, one per source port: with this job there are {num_flows[crowded]:,}",
            )
