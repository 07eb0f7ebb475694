"""How fast a job is alone on its paths, and whether the levels of its own flows slow it down."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.job import Job
from policies.model.picoseconds import PS_PER_S
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows
from policies.task_graph import Computation
from topologies.fabric import Path

SLOWER = 1.0005
"""Half of a thousandth more is not slower: the model only knows roughly how long packets take to arrive."""
LATENCY_S = 5e-6
"""About how long packets take. With none at all, more tasks end at the same moment than in a network."""
_ITERATIONS = 3
"""The first one is not measured."""
_LONGEST_S = 4e6
"""Picoseconds are counted up to about twice this time."""


def time_on_s(job: Job, paths: Sequence[Path], rates_bps: FloatArray) -> float:
    """Return the time of an iteration of a job alone whose flows take these paths and are all alike.

    ``rates_bps`` has by link its rate.
    """
    alike = np.zeros(len(job.flow_groups), dtype=np.int64)
    return alone_s(job, RoutedFlows.of([job], [paths], rates_bps), alike, alike, LATENCY_S)


def alone_s(job: Job, routed: RoutedFlows, levels: IntArray, orders: IntArray, latency_s: float = 0.0) -> float:
    """Return the time of an iteration of a job alone; infinity where it takes longer than models can count.

    Args:
        job: The job.
        routed: Its flows on their paths.
        levels: By class of flows, their level.
        orders: By class of flows, their place in the order at hosts.
        latency_s: How long every byte is on its way, beyond the delays of links. Where it takes no time, more tasks
            end at the same moment than in a network, and levels of flows that never meet there may still look harmless,
            or harmful.
    """
    graph = job.played_graph
    bundles = routed.bundles(levels, orders)
    bundles = replace(bundles, latency_ps=bundles.latency_ps + round(latency_s * PS_PER_S))
    playing = PlayingJobs([graph], np.zeros(1), routed.num_bundles, routed.size_bytes, bundles)
    # No iteration is shorter than its longest computation, so that no run has many more of them than asked for.
    until_s = _ITERATIONS * max(task.duration_s for task in graph.tasks if isinstance(task, Computation))
    while playing.iterations[0] < _ITERATIONS:
        if until_s > _LONGEST_S:
            return math.inf
        playing.run(until_s)
        until_s *= 2
    ends_s = playing.ends_s(0)
    return float(ends_s[_ITERATIONS - 1] - ends_s[0]) / (_ITERATIONS - 1)
