"""Jobs of a trace under a policy, each on its GPUs for as long as it was logged to run, whatever it gets done.

So the same jobs are at the same places at the same times under every policy, and what they compute can be compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

import numpy as np

from experiments.traces.run import TraceOptions
from experiments.traces.traffic import TraceTraffic
from policies.policy import Policy
from policies.rates.network import FloatArray
from policies.registry import as_policy
from simulator.fluid import PS_PER_S
from topologies.fabric import Fabric
from workloads.traces.gpu_occupancy import Occupancy
from workloads.traces.simulated_jobs import SimulatedJob

_BEGINS, _ENDS, _DECIDES = 0, 1, 2
_NOBODY = -1


def run_stays(stays: Sequence[Occupancy], fabric: Fabric, policy: Policy | str, options: TraceOptions) -> FloatArray:
    """For how many seconds each of these jobs, all of which send, computes while it stays.

    Plans are decided, and in force, as ``experiments.traces.run`` has it. Raises ValueError where the policy cannot
    decide.
    """
    traffic = TraceTraffic(fabric, as_policy(policy), options.seed, options.skip)
    reaction_ps = round(options.reaction_delay_s * PS_PER_S)
    events = [(round(stay.from_s * PS_PER_S), _BEGINS, number) for number, stay in enumerate(stays)]
    events += [(round(stay.to_s * PS_PER_S), _ENDS, number) for number, stay in enumerate(stays)]
    heapify(events)
    jobs, computed_s = {}, np.zeros(len(stays))
    while events:
        now_ps = events[0][0]
        traffic.next_done_ps(now_ps)
        ended, decides = [], False
        while events and events[0][0] == now_ps:
            _, what, number = heappop(events)
            if what == _DECIDES:
                decides = True
                continue
            if what == _BEGINS:
                jobs[number] = traffic.begin(_busy(stays[number]), stays[number].allocation, now_ps)
            else:
                traffic.take_out(jobs[number].name, now_ps)
                ended.append(number)
            heappush(events, (now_ps + reaction_ps, _DECIDES, _NOBODY))
        if decides:
            traffic.plan(now_ps, now_ps - reaction_ps)
        traffic.regroup(now_ps)
        for number in ended:
            computed_s[number] = jobs.pop(number).computed_s(now_ps)
    return computed_s


def _busy(stay: Occupancy) -> SimulatedJob:
    """The job with more work than it can do while it stays."""
    run_time_s = stay.to_s - stay.from_s + 2 * stay.job.ideal_iteration_s
    return replace(stay.job, request=replace(stay.job.request, run_time_s=run_time_s))
