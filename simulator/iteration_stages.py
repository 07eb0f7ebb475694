"""Stages of iterating jobs: a row of integers for each job, and compiled transitions.

An iteration is a computation in two parts, with a transfer beside the second; the next iteration may then be held. Jobs
that share GPUs compute in turn; the job that has waited longest is next.
"""

import numpy as np
import numpy.typing as npt

from policies.jit import compiled
from policies.model.picoseconds import NEVER_PS

JobTable = npt.NDArray[np.int64]
"""A row per job with the columns below; times in picoseconds."""

# The iteration: its computation before and beside the transfer, the period of its rhythm (0: none), and a beat.
BEFORE, BESIDE, PERIOD, BEAT = 0, 1, 2, 3
# The current stage, its start and its end.
STAGE, SINCE, UNTIL = 4, 5, 6
# Whether a transfer has yet to arrive, its active bundles, its arrival, and the latest arrival of its sent bundles.
TRANSFERS, SENDING, ARRIVES, LATEST = 7, 8, 9, 10
# Whether the job is in rhythm, its completed iterations, the end of the last one, and the duration of computations.
IN_RHYTHM, ITERATIONS, BEGUN, COMPUTED = 11, 12, 13, 14
# Jobs with the same number share GPUs and compute in turn; 0: GPUs of its own.
SHARED = 15
NUM_COLUMNS = 16

# Stages: held, computing before the transfer, computing beside it, done computing, waiting for GPUs, given GPUs.
HELD, ALONE, OVERLAPPED, DONE, WAITING, CALLED = 0, 1, 2, 3, 4, 5

_DRIFTS_PER_PERIOD = 20
"""A job that is off by more than one part in this many waits for its beat, like ``hostlib.start_shift``."""


@compiled
def next_step_ps(jobs: JobTable) -> int:
    """Return when the first stage or transfer of any job ends."""
    next_ps = NEVER_PS
    for job in range(len(jobs)):
        next_ps = min(next_ps, jobs[job, UNTIL], jobs[job, ARRIVES])
    return next_ps


@compiled
def end_stage(jobs: JobTable, job: int, now_ps: int) -> bool:
    """End a job's stage and begin the next; return whether its transfer begins now."""
    stage, shared = jobs[job, STAGE], jobs[job, SHARED]
    computed = stage in (ALONE, OVERLAPPED)
    if computed:
        jobs[job, COMPUTED] += now_ps - jobs[job, SINCE]
    jobs[job, SINCE] = now_ps
    if stage == HELD and shared and are_taken(jobs, shared):
        jobs[job, STAGE], jobs[job, UNTIL] = WAITING, NEVER_PS
        return False
    if not computed and jobs[job, BEFORE]:
        jobs[job, STAGE], jobs[job, UNTIL] = ALONE, now_ps + jobs[job, BEFORE]
        return False
    if stage != OVERLAPPED and jobs[job, BESIDE]:
        jobs[job, STAGE], jobs[job, UNTIL] = OVERLAPPED, now_ps + jobs[job, BESIDE]
        return True
    jobs[job, STAGE], jobs[job, UNTIL] = DONE, NEVER_PS
    if shared:
        call_next(jobs, shared, now_ps)
    return bool(stage != OVERLAPPED)


@compiled
def are_taken(jobs: JobTable, shared: int) -> bool:
    """Tell whether a job computes on these GPUs or has been given them."""
    for job in range(len(jobs)):
        if jobs[job, SHARED] == shared and jobs[job, STAGE] in (ALONE, OVERLAPPED, CALLED):
            return True
    return False


@compiled
def call_next(jobs: JobTable, shared: int, now_ps: int) -> None:
    """Give free GPUs to the job that has waited longest for them; of several, the first."""
    next_job = -1
    for job in range(len(jobs)):
        waits = jobs[job, SHARED] == shared and jobs[job, STAGE] == WAITING
        if waits and (next_job < 0 or jobs[job, SINCE] < jobs[next_job, SINCE]):
            next_job = job
    if next_job >= 0:
        jobs[next_job, STAGE], jobs[next_job, UNTIL] = CALLED, now_ps


@compiled
def end_sending(jobs: JobTable, job: int, now_ps: int, latency_ps: int) -> None:
    """End a bundle of a job; its last bytes arrive a latency later."""
    jobs[job, SENDING] -= 1
    jobs[job, LATEST] = max(jobs[job, LATEST], now_ps + latency_ps)
    if not jobs[job, SENDING]:
        jobs[job, ARRIVES] = jobs[job, LATEST]


@compiled
def end_iteration(jobs: JobTable, job: int, now_ps: int) -> None:
    """End a job's iteration and hold the next as its rhythm requires."""
    jobs[job, ITERATIONS] += 1
    jobs[job, BEGUN] = jobs[job, SINCE] = now_ps
    jobs[job, STAGE], jobs[job, UNTIL] = HELD, now_ps + _hold_ps(jobs, job, now_ps)


@compiled
def _hold_ps(jobs: JobTable, job: int, now_ps: int) -> int:
    period_ps = jobs[job, PERIOD]
    if not period_ps:
        return 0
    late_ps = (now_ps - jobs[job, BEAT]) % period_ps
    if 2 * late_ps > period_ps:
        late_ps -= period_ps
    is_new, jobs[job, IN_RHYTHM] = not jobs[job, IN_RHYTHM], 1
    if _DRIFTS_PER_PERIOD * late_ps > period_ps:
        return int(period_ps - late_ps)
    if is_new or _DRIFTS_PER_PERIOD * late_ps < -period_ps:
        return max(0, -int(late_ps))
    return 0


def computed_ps(jobs: JobTable, now_ps: int) -> npt.NDArray[np.int64]:
    """Return how long every job has computed so far."""
    computes = (jobs[:, STAGE] == ALONE) | (jobs[:, STAGE] == OVERLAPPED)
    return jobs[:, COMPUTED] + np.where(computes, now_ps - jobs[:, SINCE], 0)
