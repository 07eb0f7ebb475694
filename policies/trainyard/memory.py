"""What a Plan of the policy ``trainyard`` remembers, as JSON and back to the bit, so that it decides the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from policies.flow_arrays import FloatArray
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.trainyard.component import Outcome, Setting
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.policy import Memory
from policies.trainyard.ways import ways_along

_FIGURES = ("intensity", "urgency", "share", "served", "excess", "worth", "worth_before")


def remembered_jobs(plan: Plan) -> dict[str, Any]:
    """What a Plan remembers of each job by name; nothing where it is another policy's."""
    memory = plan.memory
    return {} if not isinstance(memory, Memory) else {name: _value(each) for name, each in memory.outcomes.items()}


def remembered_prices(plan: Plan) -> dict[str, float]:
    """The prices of links that have one, by link."""
    if not isinstance(plan.memory, Memory):
        return {}
    prices = plan.memory.prices
    return {str(link): float(prices[link]) for link in np.flatnonzero(prices).tolist()}


def recalled(plan: Plan, snapshot: Snapshot, jobs: Mapping[str, Any], prices: Mapping[str, float]) -> Memory:
    """The memory of a Plan for a Snapshot, of what ``remembered_jobs`` and ``remembered_prices`` gave."""
    setting = Setting(snapshot.links, snapshot.num_levels, snapshot.seed, TrainyardOptions())
    outcomes = {job.name: _outcome(job, jobs[job.name], plan, setting) for job in snapshot.jobs if job.name in jobs}
    of_links: FloatArray = np.zeros(len(snapshot.links))
    for link, price in prices.items():
        of_links[int(link)] = price
    flows = {name: {flow.key: plan.flows[flow.key] for flow in outcome.job.flows} for name, outcome in outcomes.items()}
    return Memory(setting, outcomes, flows, of_links)


def _value(outcome: Outcome) -> list[Any]:
    return [list(outcome.levels), list(outcome.places), *(getattr(outcome, name) for name in _FIGURES)]


def _outcome(job: Job, value: list[Any], plan: Plan, setting: Setting) -> Outcome:
    levels, places, *figures = value
    paths = [plan.flows[flow.key].path or flow.hashed_path for flow in job.flows]
    (ways,) = ways_along([job], [paths], setting.links.rates_bps)
    return Outcome(job, ways, levels, places, **dict(zip(_FIGURES, figures, strict=True)))
