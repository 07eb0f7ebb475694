"""Jobs as coflows: for how long one iteration occupies every link, and how much each job counts.

At job cadence a job is one coflow, that of all its flows in one iteration.
"""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from scipy.sparse import csr_array

from controller.policy.intensity import Demand, FloatArray
from controller.policy.snapshot import Job


class JobWeight(StrEnum):
    """What a coflow policy weighs a job by."""

    ONE = "one"
    GPUS = "gpus"


def weights_of(jobs: Sequence[Job], weight: JobWeight) -> FloatArray:
    """Weight of every job."""
    return np.array([job.gpus if weight is JobWeight.GPUS else 1 for job in jobs], dtype=np.float64)


def seconds_by_link(demands: Sequence[Demand], link_rates_bps: FloatArray) -> csr_array:
    """Seconds for which one iteration of each job (row) occupies each link (column)."""
    rows = [np.flatnonzero(demand.bytes_by_link) for demand in demands]
    columns = np.concatenate([np.empty(0, np.intp), *rows])
    values = [demand.bytes_by_link[row] for demand, row in zip(demands, rows, strict=True)]
    seconds = np.concatenate([np.empty(0), *values]) * 8 / link_rates_bps[columns]
    ends = np.cumsum([0, *map(len, rows)])
    return csr_array((seconds, columns, ends), shape=(len(demands), len(link_rates_bps)))
