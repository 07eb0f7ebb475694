"""Runs a trace with fixed GPU occupancies: each job has its GPUs for the time that was logged.

The same jobs are then in the same places at the same times under every policy, so that their computing time compares
policies.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

import numpy as np

from experiments.traces.run import TraceOptions
from experiments.traces.traffic import TraceTraffic
from policies.model.picoseconds import PS_PER_S
from policies.policy import Policy
from policies.rates.network import FloatArray
from policies.registry import as_policy
from topologies.fabric import Fabric
from workloads.traces.gpu_occupancy import Occupancy
from workloads.traces.simulated_jobs import SimulatedJob

_BEGIN, _END, _DECIDE = 0, 1, 2
_NO_JOB = -1


def run_occupancies(
    occupancies: Sequence[Occupancy], fabric: Fabric, policy: Policy | str, options: TraceOptions
) -> FloatArray:
    """Return for how many seconds each of these jobs, all of which send, computes while it has its GPUs.

    Decisions come as in ``experiments.traces.run``.

    Raises:
        ValueError: The policy cannot decide.
    """
    traffic = TraceTraffic(fabric, as_policy(policy), options.seed, options.skip)
    reaction_ps = round(options.reaction_delay_s * PS_PER_S)
    events = [(round(occupancy.from_s * PS_PER_S), _BEGIN, number) for number, occupancy in enumerate(occupancies)]
    events += [(round(occupancy.to_s * PS_PER_S), _END, number) for number, occupancy in enumerate(occupancies)]
    heapify(events)
    jobs, computed_s = {}, np.zeros(len(occupancies))
    while events:
        now_ps = events[0][0]
        traffic.next_done_ps(now_ps)
        ended, decides = [], False
        while events and events[0][0] == now_ps:
            _, kind, number = heappop(events)
            if kind == _DECIDE:
                decides = True
                continue
            if kind == _BEGIN:
                jobs[number] = traffic.begin(_busy(occupancies[number]), occupancies[number].allocation, now_ps)
            else:
                traffic.remove(jobs[number].name, now_ps)
                ended.append(number)
            heappush(events, (now_ps + reaction_ps, _DECIDE, _NO_JOB))
        if decides:
            traffic.plan(now_ps, now_ps - reaction_ps)
        traffic.regroup(now_ps)
        for number in ended:
            computed_s[number] = jobs.pop(number).computed_s(now_ps)
    return computed_s


def _busy(occupancy: Occupancy) -> SimulatedJob:
    """Return the job with more iterations than it can complete in this time."""
    run_time_s = occupancy.to_s - occupancy.from_s + 2 * occupancy.job.ideal_iteration_s
    return replace(occupancy.job, request=replace(occupancy.job.request, run_time_s=run_time_s))
