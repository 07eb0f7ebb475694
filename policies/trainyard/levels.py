"""An order compressed to the few levels that hardware has, by what sharing a level would lose.

Flow groups that share a link whose order a switch queue keeps form a directed graph, from the more urgent to the less;
its maximum K-cut is the compression (Crux, section 4.3). Crux weighs an edge by the intensity of the more urgent job.
Here it weighs what the two lose when they share the link evenly instead of one after the other, over all times at which
they meet (docs/trainyard-policy.md).
"""

import numpy as np

from policies.flow_arrays import FloatArray, IntArray
from policies.trainyard.contention import Contention


def losses(contention: Contention, first: IntArray, second: IntArray) -> FloatArray:
    """What pairs of groups lose per second, the first before the second, if they share a link evenly instead.

    Of two transfers that begin together, the shorter then ends after twice its time, and the longer when it would after
    the shorter. Delay costs its job's worth beyond the slack. They meet as often as one begins while the other is on.
    """
    job = contention.job_of_group
    worth, rate = contention.worth[job], contention.groups_transfers / contention.ideal_s[job]
    p = contention.mean_by_group(contention.longest_s)
    slack = contention.mean_by_group(np.maximum(contention.due_s - contention.release_s - contention.longest_s, 0.0))

    def cost(group: IntArray, delay: FloatArray) -> FloatArray:
        return worth[group] * np.maximum(delay - slack[group], 0.0)

    shared = np.minimum(p[first], p[second])
    lost = cost(first, shared) - (cost(second, p[first]) - cost(second, shared))
    return np.maximum(lost, 0.0) * rate[first] * rate[second] * (p[first] + p[second])
