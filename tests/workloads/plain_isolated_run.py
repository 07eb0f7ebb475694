"""Plain and slow isolated run: every task is looked at again at every event, and every link for every transfer."""

import numpy as np

from topologies.routing import Routing
from workloads.arrangement import ZeroCommunicationRun
from workloads.isolated_run import candidate_paths
from workloads.jobs import TrainingJob
from workloads.task_graph import Computation, GroupTransfer

_NOTHING = 1e-12


def plain_iteration_s(job: TrainingJob, routing: Routing) -> float:
    """Return the time of an iteration whose flows split evenly; a transfer needed earlier takes all it can use."""
    graph = job.graph
    flows = {group.name: group.flows for group in graph.flow_groups}
    rates_bps = np.array(routing.fabric.rates_bps)
    needed_s = ZeroCommunicationRun.of(graph).consumption_s
    seconds = {}
    for number, task in enumerate(graph.tasks):
        if isinstance(task, GroupTransfer):
            seconds[number] = np.zeros(len(rates_bps))
            for flow in (flows[task.group][position] for position in graph.flows_of(task)):
                paths = candidate_paths(flow, routing)
                for path in paths:
                    seconds[number][list(path)] += flow.size_bytes * 8 / len(paths) / rates_bps[list(path)]
    start_s: dict[int, float] = {}
    end_s: dict[int, float] = {}
    left: dict[int, float] = {}
    now_s = 0.0
    while len(end_s) < len(graph.tasks):
        for number, task in enumerate(graph.tasks):
            if number not in start_s and all(earlier in end_s for earlier in task.after):
                start_s[number] = now_s
                if number in seconds:
                    left[number] = 1.0
        free = np.ones(len(rates_bps))
        shares = {}
        for number in sorted(left, key=lambda number: (needed_s[number], number)):
            used = seconds[number] > 0
            shares[number] = float((free[used] / seconds[number][used]).min())
            free = np.maximum(free - shares[number] * seconds[number], 0.0)
        ends_s = {number: now_s + left[number] / share for number, share in shares.items() if share > _NOTHING}
        for number, task in enumerate(graph.tasks):
            if isinstance(task, Computation) and number in start_s and number not in end_s:
                ends_s[number] = start_s[number] + task.duration_s
        next_s = min(ends_s.values())
        for number in left:
            left[number] -= shares[number] * (next_s - now_s)
        now_s = next_s
        for number, each_s in ends_s.items():
            if each_s <= now_s or left.get(number, 1.0) < _NOTHING:
                end_s[number] = now_s
                left.pop(number, None)
    return now_s
