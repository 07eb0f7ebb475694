"""What a Plan of the policy ``trainyard`` remembers, as JSON and back to the bit, so that it decides the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.flow_arrays import FloatArray
from policies.flows import FlowKey
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from policies.trainyard.component import Outcome, Setting
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.ways import ways_along

_FIGURES = ("intensity", "urgency", "share", "served", "excess", "worth", "worth_before")

FlowPlans = Mapping[FlowKey, FlowPlan]


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What a Plan remembers for the next decision.

    Of the jobs that send: outcomes, and what they are for the flows; of all links what their time is worth.
    """

    setting: Setting
    outcomes: Mapping[str, Outcome]
    flows: Mapping[str, FlowPlans]
    prices: FloatArray


class TrainyardMemoryCodec:
    """Outcomes by job; shared are the prices of links that have one, by link."""

    def encode(self, memory: Memory) -> EncodedMemory:
        """Return the memory as JSON values."""
        prices = {str(link): float(memory.prices[link]) for link in np.flatnonzero(memory.prices).tolist()}
        return EncodedMemory(prices, {name: _value(outcome) for name, outcome in memory.outcomes.items()})

    def decode(self, encoded: EncodedMemory, plan: Plan, snapshot: Snapshot) -> Memory:
        """Return the memory that was encoded."""
        setting = Setting(snapshot.links, snapshot.num_levels, snapshot.seed, TrainyardOptions())
        by_job = encoded.by_job
        outcomes = {
            job.name: _outcome(job, by_job[job.name], plan, setting) for job in snapshot.jobs if job.name in by_job
        }
        prices: FloatArray = np.zeros(len(snapshot.links))
        for link, price in encoded.shared.items():
            prices[int(link)] = price
        flows = {
            name: {flow.key: plan.flows[flow.key] for flow in outcome.job.flows} for name, outcome in outcomes.items()
        }
        return Memory(setting, outcomes, flows, prices)


def _value(outcome: Outcome) -> list[Any]:
    return [list(outcome.levels), list(outcome.places), *(getattr(outcome, name) for name in _FIGURES)]


def _outcome(job: Job, value: list[Any], plan: Plan, setting: Setting) -> Outcome:
    levels, places, *figures = value
    paths = [plan.flows[flow.key].path or flow.hashed_path for flow in job.flows]
    (ways,) = ways_along([job], [paths], setting.links.rates_bps)
    return Outcome(job, ways, levels, places, **dict(zip(_FIGURES, figures, strict=True)))
