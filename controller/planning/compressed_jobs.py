"""Jobs that compress, as policies see them: they send what they have told last, and have no slack to give.

A group that is compressed fills the time that it has: its last part, as the last bucket of a backward pass, ends when
computation would wait. A task graph has one transfer for all parts, released with the first. So the transfer of what is
left begins only so early that, with its links to itself, it ends when it is needed: who delays it delays the job.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from policies.arrays import FloatArray
from policies.flows import Flow, FlowGroup, Uncompressed
from policies.job import Job
from policies.task_graph import Computation, Task, TaskGraph, Transfer
from policies.transfers import windows_s

_LEAST_DELAY_S = 1e-9


def compressed_job(job: Job, sent_bytes: Mapping[str, int], rates_bps: FloatArray) -> Job:
    """Return a job whose flow groups send so much, each flow in proportion.

    Args:
        job: As it would send uncompressed.
        sent_bytes: By flow group that the job can compress.
        rates_bps: By link, its rate.
    """
    groups = tuple(_compressed(job, number, sent_bytes) for number in range(len(job.flow_groups)))
    graph = job.task_graph
    if graph is not None:
        flows = [flow for group in groups for flow in group.flows]
        is_less = [
            group.uncompressed is not None and sent_bytes[group.name] < group.uncompressed.size_bytes
            for group in groups
            for _ in group.flows
        ]
        graph = without_slack(graph, flows, is_less, rates_bps)
    return replace(job, flow_groups=groups, task_graph=graph)


def without_slack(graph: TaskGraph, flows: list[Flow], is_less: list[bool], rates_bps: FloatArray) -> TaskGraph:
    """Return the graph with the transfers of flows that send less than they would released as late as they may be."""
    windows = windows_s(graph)
    tasks: list[Task] = []
    place: list[int] = []
    for number, task in enumerate(graph.tasks):
        after = tuple(place[before] for before in task.after)
        if isinstance(task, Transfer) and is_less[task.flows[0]]:
            delay_s = windows[number] - _alone_s([flows[flow] for flow in task.flows], rates_bps)
            if delay_s > _LEAST_DELAY_S:
                tasks.append(Computation(delay_s, after))
                after = (len(tasks) - 1,)
        place.append(len(tasks))
        tasks.append(replace(task, after=after))
    return replace(graph, tasks=tuple(tasks))


def _compressed(job: Job, number: int, sent_bytes: Mapping[str, int]) -> FlowGroup:
    group, transfers = job.flow_groups[number], job.transfers
    dense_bytes = sum(flow.size_bytes for flow in group.flows)
    if group.name not in sent_bytes or not dense_bytes:
        return group
    share = max(sent_bytes[group.name], 1) / dense_bytes
    of_group = transfers.group_of == number
    windows = transfers.due_s[of_group] - transfers.release_s[of_group]
    last = transfers.release_s[of_group].argmax()
    return FlowGroup(
        group.name,
        tuple(replace(flow, size_bytes=flow.size_bytes * share) for flow in group.flows),
        Uncompressed(dense_bytes, float(windows.sum()), float(windows[last])),
    )


def _alone_s(flows: list[Flow], rates_bps: FloatArray) -> float:
    """Return how long flows take on the hash's paths with these to themselves."""
    bits: defaultdict[int, float] = defaultdict(float)
    for flow in flows:
        for link in (*flow.hashed_path, *flow.host_links):
            bits[link] += flow.size_bytes * 8
    return max((size / float(rates_bps[link]) for link, size in bits.items()), default=0.0)
