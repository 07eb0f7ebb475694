"""How fast a job is alone on its paths, and whether the levels of its own flows slow it down."""

import numpy as np

from policies.arrays import IntArray
from policies.job import Job
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows

_ITERATIONS = 3
"""The first one is not measured."""
_FIRST_S = 1.0


def alone_s(job: Job, routed: RoutedFlows, levels: IntArray, orders: IntArray) -> float:
    """Return the time of an iteration of a job alone.

    Args:
        job: The job.
        routed: Its flows on their paths.
        levels: By class of flows, their level.
        orders: By class of flows, their place in the order at hosts.
    """
    bundles = routed.bundles(levels, orders)
    playing = PlayingJobs([job.played_graph], np.zeros(1), routed.num_bundles, routed.size_bytes, bundles)
    until_s = _FIRST_S
    while playing.iterations[0] < _ITERATIONS:
        playing.run(until_s)
        until_s *= 2
    ends_s = playing.ends_s(0)
    return float(ends_s[_ITERATIONS - 1] - ends_s[0]) / (_ITERATIONS - 1)
