"""Task graphs are scaled to the profiles of their jobs: a graph says what an iteration does, a profile how long it is.

Jobs measure both, not always at once. Policies rely on it that they agree.
"""

import math
from dataclasses import replace

from policies.task_graph import Computation, TaskGraph

_TOLERANCE = 1e-9


def scaled_graph(graph: TaskGraph | None, compute_s: float) -> TaskGraph | None:
    """Return the graph with computations so much longer or shorter that it takes ``compute_s`` without communication.

    A graph that takes as long already stays the same object. Where a job says that it computes nothing, its graph says
    nothing either: None.
    """
    if graph is None or compute_s == 0:
        return None
    told_s = graph.compute_s
    if math.isclose(told_s, compute_s, rel_tol=_TOLERANCE):
        return graph
    tasks = tuple(
        replace(task, duration_s=max(task.duration_s / told_s * compute_s, math.ulp(0.0)))
        if isinstance(task, Computation)
        else task
        for task in graph.tasks
    )
    return replace(graph, tasks=tasks)
