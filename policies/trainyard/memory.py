"""What a Plan of the policy ``trainyard`` remembers, and its codec for records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.arrays import FloatArray
from policies.flows import FlowKey
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from policies.trainyard.component import Settings
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.outcome import JobOutcome
from policies.trainyard.path_choice import path_choices

_FIGURES = (
    "intensity",
    "urgency",
    "alone_s",
    "bound_share",
    "served",
    "lacks",
    "excess",
    "worth",
    "worth_before",
    "is_modelled",
)
"""Fields of an outcome, in the order in which records list them."""

FlowPlans = Mapping[FlowKey, FlowPlan]


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What a Plan remembers for the next decision.

    Attributes:
        settings: Of the Snapshot; with other ones nothing of this counts.
        outcomes: By name, the outcomes of the jobs that send.
        flows: By name, the flow plans of these jobs.
        prices: By link of the fabric, what its time is worth in the fluid bound.
    """

    settings: Settings
    outcomes: Mapping[str, JobOutcome]
    flows: Mapping[str, FlowPlans]
    prices: FloatArray


class TrainyardMemoryCodec:
    """Encodes outcomes by job; the prices of links that have one are shared."""

    def encode(self, memory: Memory) -> EncodedMemory:
        """Return the memory as JSON values."""
        prices = {str(link): float(memory.prices[link]) for link in np.flatnonzero(memory.prices).tolist()}
        return EncodedMemory(prices, {name: _value(outcome) for name, outcome in memory.outcomes.items()})

    def decode(self, encoded: EncodedMemory, plan: Plan, snapshot: Snapshot) -> Memory:
        """Return the memory that was encoded."""
        settings = Settings(snapshot.links, snapshot.num_levels, snapshot.seed, TrainyardOptions())
        by_job = encoded.by_job
        outcomes = {
            job.name: _outcome(job, by_job[job.name], plan, settings) for job in snapshot.jobs if job.name in by_job
        }
        prices: FloatArray = np.zeros(len(snapshot.links))
        for link, price in encoded.shared.items():
            prices[int(link)] = price
        flows = {
            name: {flow.key: plan.flows[flow.key] for flow in outcome.job.flows} for name, outcome in outcomes.items()
        }
        return Memory(settings, outcomes, flows, prices)


def _value(outcome: JobOutcome) -> list[Any]:
    return [list(outcome.levels), list(outcome.places), *(getattr(outcome, name) for name in _FIGURES)]


def _outcome(job: Job, value: list[Any], plan: Plan, settings: Settings) -> JobOutcome:
    levels, places, *figures = value
    paths = [plan.flows[flow.key].path or flow.hashed_path for flow in job.flows]
    (choice,) = path_choices([job], [paths], settings.links.rates_bps)
    return JobOutcome(job, choice, levels, places, **dict(zip(_FIGURES, figures, strict=True)))
