"""An iteration of a job that has the fabric to itself: its duration, and the tardiness of its flow groups.

A fluid model: flows split over their candidate paths as is best at every moment (``workloads.best_paths``). Where
transfers of the job share a link, the one with the earliest ideal finish takes all it can use, which is optimal on a
single link.
"""

import bisect
import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topologies.fabric import Path
from topologies.routing import Routing
from workloads.arrangement import ZeroCommunicationRun
from workloads.best_paths import LEAST_SHARE, BestPaths, EvenPaths, LinkSeconds, are_alike
from workloads.demand import Demand
from workloads.jobs import TrainingJob
from workloads.task_graph import Computation, FlowSpec, GroupTransfer, TaskGraph


@dataclass(frozen=True, slots=True)
class IsolatedRun:
    """Duration of an isolated iteration and the tardiness of its flow groups."""

    iteration_time_s: float
    tardiness_s: Mapping[str, float]


def run_isolated(job: TrainingJob, routing: Routing) -> IsolatedRun:
    """Run one iteration of a job on an empty fabric."""
    graph = job.graph
    groups = {group.name: group.flows for group in graph.flow_groups}
    sent = {
        number: [groups[task.group][flow] for flow in graph.flows_of(task)]
        for number, task in enumerate(graph.tasks)
        if isinstance(task, GroupTransfer)
    }
    start_s, end_s = _times(graph, _paths(sent, routing))
    starts: defaultdict[str, list[float]] = defaultdict(list)
    lateness: defaultdict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(graph.tasks):
        if isinstance(task, GroupTransfer):
            starts[task.group].append(start_s[number])
            lateness[task.group].append(end_s[number] - min(flow.offset_s for flow in sent[number]))
    return IsolatedRun(max(end_s.values()), {name: max(lateness[name]) - min(starts[name]) for name in groups})


def _times(graph: TaskGraph, paths: EvenPaths | BestPaths) -> tuple[dict[int, float], dict[int, float]]:
    """Return by task when it starts and when it ends."""
    needed_s = ZeroCommunicationRun.of(graph).consumption_s
    waits_for = [len(set(task.after)) for task in graph.tasks]
    later = graph.later_tasks
    start_s: dict[int, float] = {}
    end_s: dict[int, float] = {}
    computing: list[tuple[float, int]] = []
    sending: list[tuple[float, int]] = []
    left: dict[int, float] = {}
    shares: Mapping[int, float] = {}
    ready = [number for number, missing in enumerate(waits_for) if not missing]
    now_s = 0.0
    while len(end_s) < len(graph.tasks):
        for number in ready:
            task = graph.tasks[number]
            start_s[number] = now_s
            if isinstance(task, Computation):
                heapq.heappush(computing, (now_s + task.duration_s, number))
            else:
                left[number] = 1.0
                bisect.insort(sending, (needed_s[number], number))
        if len(shares) != len(sending) or any(number not in shares for _, number in sending):
            shares = paths.shares([number for _, number in sending])
        due_s = {number: now_s + left[number] / share for number, share in shares.items() if share > 0}
        now_s, before_s = min([*due_s.values(), *(at_s for at_s, _ in computing[:1])]), now_s
        for number, share in shares.items():
            left[number] -= share * (now_s - before_s)
        ended = [number for number in left if due_s.get(number, math.inf) <= now_s or left[number] < LEAST_SHARE]
        for number in ended:
            del left[number]
            sending.remove((needed_s[number], number))
        while computing and computing[0][0] <= now_s:
            ended.append(heapq.heappop(computing)[1])
        ready = []
        for number in ended:
            end_s[number] = now_s
            for following in later[number]:
                waits_for[following] -= 1
                if not waits_for[following]:
                    ready.append(following)
    return start_s, end_s


def _paths(flows_of: Mapping[int, Sequence[FlowSpec]], routing: Routing) -> EvenPaths | BestPaths:
    demand = Demand.of_flows(list(flows_of.values()), routing)
    if not are_alike(demand, routing):
        return BestPaths(demand, list(flows_of), routing)
    known: dict[tuple[object, ...], LinkSeconds] = {}
    seconds = {}
    for number, flows in flows_of.items():
        # Most transfers of an iteration repeat those of other micro-batches.
        alike = tuple(
            (flow.source_host, flow.source_nic, flow.destination_host, flow.destination_nic, flow.size_bytes)
            for flow in flows
        )
        if alike not in known:
            known[alike] = _link_seconds(flows, routing)
        seconds[number] = known[alike]
    return EvenPaths(seconds, len(routing.fabric.rates_bps))


def _link_seconds(flows: Iterable[FlowSpec], routing: Routing) -> LinkSeconds:
    """Return how long each link needs for these flows, spread evenly over their candidate paths."""
    rates_bps = routing.fabric.rates_bps
    seconds: defaultdict[int, float] = defaultdict(float)
    for flow in flows:
        paths = candidate_paths(flow, routing) if flow.size_bytes else ()
        for path in paths:
            for link in path:
                seconds[link] += flow.size_bytes * 8 / len(paths) / rates_bps[link]
    return np.array(list(seconds), dtype=np.int64), np.array(list(seconds.values()))


def candidate_paths(flow: FlowSpec, routing: Routing) -> tuple[Path, ...]:
    """Return the paths that ECMP can give a flow, each followed by the links inside its hosts."""
    nics = routing.fabric.nics
    source, destination = nics[flow.source_host][flow.source_nic], nics[flow.destination_host][flow.destination_nic]
    inside = routing.fabric.host_links_between(source, destination)
    return tuple((*path, *inside) for path in routing.candidate_paths(source, destination))
