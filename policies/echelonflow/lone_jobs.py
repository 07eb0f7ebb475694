"""Jobs alone on their hashed paths: whether the levels and orders of a job's own flows make it slower.

The answers are kept for as long as the job lives: a decision asks the same about most jobs as the one before.
"""

import weakref
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from policies.echelonflow.formations import Parting
from policies.flows import FlowKey
from policies.job import Job
from policies.plan import FlowPlan
from policies.snapshot import Links

if TYPE_CHECKING:
    from policies.model.routed_flows import RoutedFlows

_Pattern = tuple[int, ...]


@dataclass(slots=True, eq=False)
class LoneJob:
    """What is known of a job alone, without the job itself.

    A class is the flows of a transfer that have the same ideal finish.

    Attributes:
        links: The links of the fabric.
        classes: By flow, its class.
        first_flows: By class, its first flow that sends.
        partings: By number of levels and options of the policy, what may be told apart when the job is alone.
    """

    links: Links
    classes: list[int]
    first_flows: tuple[FlowKey, ...]
    partings: dict[Hashable, Parting] = field(default_factory=dict)
    _routed: "RoutedFlows | None" = None
    _times_s: dict[tuple[_Pattern, _Pattern], float] = field(default_factory=dict)

    def is_slowed(self, job: Job, flows: Mapping[FlowKey, FlowPlan]) -> bool:
        """Return whether the job alone is slower with the levels and orders of its flows than if all were alike."""
        plans = [flows[key] for key in self.first_flows]
        levels, orders = _ranks([plan.level for plan in plans]), _ranks([plan.order for plan in plans])
        if not (any(levels) or any(orders)):
            return False
        alike = (0,) * len(plans)
        # The model imports numba, which takes longer than a decision.
        from policies.model.alone import SLOWER

        return not self._time_s(job, levels, orders) < SLOWER * self._time_s(job, alike, alike)

    def _time_s(self, job: Job, levels: _Pattern, orders: _Pattern) -> float:
        """Return the time of an iteration where classes have these levels and orders."""
        if (levels, orders) not in self._times_s:
            from policies.model.alone import LATENCY_S, alone_s
            from policies.model.routed_flows import RoutedFlows

            if self._routed is None:
                paths = [flow.hashed_path for flow in job.flows]
                self._routed = RoutedFlows.of([job], [paths], self.links.rates_bps, [self.classes])
            by_class = np.array(levels, dtype=np.int64), np.array(orders, dtype=np.int64)
            self._times_s[levels, orders] = alone_s(job, self._routed, *by_class, LATENCY_S)
        return self._times_s[levels, orders]


_lone_jobs: dict[int, tuple[weakref.ref[Job], LoneJob]] = {}
"""By identity of the job: to compare two jobs takes longer than a decision."""


def lone_job(job: Job, links: Links) -> LoneJob:
    """Return what is known of a job alone on a fabric with these links."""
    number = id(job)
    reference, lone = _lone_jobs.get(number, (None, None))
    if reference is None or lone is None or reference() is not job or lone.links is not links:
        classes: dict[tuple[int, float], int] = {}
        first_flows: list[FlowKey] = []
        class_of = [0] * len(job.flows)
        for place, (flow, transfer) in enumerate(zip(job.flows, job.transfers.transfer_of.tolist(), strict=True)):
            if flow.sends:
                class_of[place] = classes.setdefault((transfer, flow.offset_s), len(classes))
                if class_of[place] == len(first_flows):
                    first_flows.append(flow.key)
        lone = LoneJob(links, class_of, tuple(first_flows))
        _lone_jobs[number] = weakref.ref(job, lambda _: _lone_jobs.pop(number, None)), lone
    return lone


def _ranks(values: list[int]) -> _Pattern:
    """Return the values as whole numbers from 0 without gaps, in the same order."""
    place = {value: number for number, value in enumerate(sorted(set(values)))}
    return tuple([place[value] for value in values])
