"""The order of open flow groups at group events, from the bytes that they still have: one function for every policy.

At job events a policy orders jobs (its Plan); with ideal rates at group events it orders what is under way, by the same
functions.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from policies.baselines.sincronia import bssi
from policies.baselines.varys import bottleneck_times, sebf
from policies.intensity import FloatArray
from policies.policy_name import PolicyName


def group_order(policy: PolicyName, seconds_by_link: csr_array, started_s: FloatArray) -> npt.NDArray[np.int64]:
    """Groups (rows), most urgent first, by the seconds for which each occupies links (columns) and when it started.

    All groups weigh the same. Raises ValueError for a policy that orders no groups by that; EchelonFlow wants to know
    besides when they are due (``policies.echelonflow.policy.open_group_order``).
    """
    ones = np.ones(seconds_by_link.shape[0])
    match policy:
        case PolicyName.FIFO:
            return started_s.argsort(kind="stable")
        case PolicyName.VARYS:
            return sebf(bottleneck_times(seconds_by_link), ones)
        case PolicyName.SINCRONIA:
            return bssi(seconds_by_link, ones)
        case _:
            raise ValueError(f"{policy} orders no flow groups by their bytes")
