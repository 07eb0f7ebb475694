"""Task graphs of jobs that compress: what is left of a flow group is sent later.

A group's parts, as the buckets of a backward pass, are ready one after the other from its release on until computation
waits for it. A graph has one transfer for all of them, released with the first. Where the group sends a share s of its
bytes, they take the link for s as long, but the last part is ready no sooner. So the transfer begins so much later that
s of its window is left: a group that sends little is waited for as soon as it is released.
"""

from collections.abc import Mapping
from dataclasses import replace

from policies.task_graph import Computation, Task, TaskGraph, Transfer
from policies.transfers import windows_s

_LEAST_DELAY_S = 1e-9


def compressed_graph(graph: TaskGraph, share_of: Mapping[int, float]) -> TaskGraph:
    """Return the graph with the transfers of compressed flows released later.

    Args:
        graph: What the job has told.
        share_of: By flow that is compressed, the share of its bytes that it sends.
    """
    if not share_of:
        return graph
    window_of = windows_s(graph)
    tasks: list[Task] = []
    place: list[int] = []
    for number, task in enumerate(graph.tasks):
        after = tuple(place[before] for before in task.after)
        if isinstance(task, Transfer):
            delay_s = (1 - min(share_of.get(task.flows[0], 1.0), 1.0)) * window_of[number]
            if delay_s > _LEAST_DELAY_S:
                tasks.append(Computation(delay_s, after))
                after = (len(tasks) - 1,)
        place.append(len(tasks))
        tasks.append(replace(task, after=after))
    return replace(graph, tasks=tuple(tasks))
