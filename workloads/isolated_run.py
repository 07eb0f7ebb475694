"""An iteration of a job that has the fabric to itself: its duration, and the tardiness of its flow groups.

A fluid model: flows split over their candidate paths as is best at every moment (``workloads.best_paths``). Where
transfers of the job share a link, the one with the earliest ideal finish takes all it can use, which is optimal on a
single link.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from topologies.fabric import Path
from topologies.routing import Routing
from workloads.arrangement import ZeroCommunicationRun
from workloads.best_paths import LEAST_SHARE, BestPaths, EvenPaths, FloatArray, are_alike
from workloads.demand import Demand
from workloads.jobs import TrainingJob
from workloads.task_graph import Computation, FlowSpec, GroupTransfer


@dataclass(frozen=True, slots=True)
class IsolatedRun:
    """Duration of an isolated iteration and the tardiness of its flow groups."""

    iteration_time_s: float
    tardiness_s: Mapping[str, float]


def run_isolated(job: TrainingJob, routing: Routing) -> IsolatedRun:
    """Run one iteration of a job on an empty fabric."""
    graph = job.graph
    groups = {group.name: group for group in graph.flow_groups}
    needed_s = ZeroCommunicationRun.of(graph).consumption_s
    paths = _paths(
        {
            number: [groups[task.group].flows[flow] for flow in graph.flows_of(task)]
            for number, task in enumerate(graph.tasks)
            if isinstance(task, GroupTransfer)
        },
        routing,
    )
    waits_for = [set(task.after) for task in graph.tasks]
    start_s: dict[int, float] = {}
    end_s: dict[int, float] = {}
    left: dict[int, float] = {}
    now_s = 0.0
    while len(end_s) < len(graph.tasks):
        for number, task in enumerate(graph.tasks):
            if number not in start_s and waits_for[number] <= end_s.keys():
                start_s[number] = now_s
                if isinstance(task, GroupTransfer):
                    left[number] = 1.0
        shares = paths.shares(sorted(left, key=lambda number: (needed_s[number], number)))
        due_s = {number: now_s + left[number] / share for number, share in shares.items() if share > 0}
        for number, task in enumerate(graph.tasks):
            if isinstance(task, Computation) and number in start_s and number not in end_s:
                due_s[number] = start_s[number] + task.duration_s
        next_s = min(due_s.values())
        for number, share in shares.items():
            left[number] -= share * (next_s - now_s)
        now_s = next_s
        for number in [number for number, due in due_s.items() if due <= now_s or left.get(number, 1.0) < LEAST_SHARE]:
            end_s[number] = now_s
            left.pop(number, None)
    starts: defaultdict[str, list[float]] = defaultdict(list)
    lateness: defaultdict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(graph.tasks):
        if isinstance(task, GroupTransfer):
            starts[task.group].append(start_s[number])
            first_due = min(groups[task.group].flows[flow].offset_s for flow in graph.flows_of(task))
            lateness[task.group].append(end_s[number] - first_due)
    return IsolatedRun(now_s, {name: max(lateness[name]) - min(starts[name]) for name in groups})


def _paths(flows_of: Mapping[int, Iterable[FlowSpec]], routing: Routing) -> EvenPaths | BestPaths:
    demand = Demand.of_flows(list(flows_of.values()), routing)
    if are_alike(demand, routing):
        return EvenPaths({number: _link_seconds(flows, routing) for number, flows in flows_of.items()})
    return BestPaths(demand, list(flows_of), routing)


def _link_seconds(flows: Iterable[FlowSpec], routing: Routing) -> FloatArray:
    """Return how long each link needs for these flows, spread evenly over their candidate paths."""
    rates_bps = routing.fabric.rates_bps
    seconds = np.zeros(len(rates_bps))
    for flow in flows:
        paths = candidate_paths(flow, routing)
        for path in paths:
            for link in path:
                seconds[link] += flow.size_bytes * 8 / len(paths) / rates_bps[link]
    return seconds


def candidate_paths(flow: FlowSpec, routing: Routing) -> tuple[Path, ...]:
    """Return the paths that ECMP can give a flow, each followed by the links inside its hosts."""
    nics = routing.fabric.nics
    source, destination = nics[flow.source_host][flow.source_nic], nics[flow.destination_host][flow.destination_nic]
    inside = routing.fabric.host_links_between(source, destination)
    return tuple((*path, *inside) for path in routing.candidate_paths(source, destination))
