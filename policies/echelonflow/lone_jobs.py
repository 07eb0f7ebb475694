"""Jobs alone on their hashed paths: whether the levels and orders of a job's own flows make it slower.

The answers are kept for as long as the job lives: a decision asks the same about most jobs as the one before.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from policies.arrays import IntArray
from policies.flows import FlowKey
from policies.job import Job
from policies.model.alone import alone_s
from policies.model.routed_flows import RoutedFlows
from policies.plan import FlowPlan
from policies.snapshot import Links

_SLOWER = 1.0005
"""Half of a thousandth more is not slower: the model knows only about how long packets take to arrive."""
_LATENCY_S = 5e-6


@dataclass(slots=True, eq=False)
class _LoneJob:
    """What is known of a job alone.

    Attributes:
        links: The links of the fabric.
        first_flows: By class, its first flow. A class is the flows of a transfer that have the same ideal finish.
        routed: The flows by class, on their paths.
        together_s: The time of an iteration where all flows are alike.
        is_slowed: By levels and orders of the classes, whether they make the job slower.
    """

    links: Links
    first_flows: tuple[FlowKey, ...]
    routed: RoutedFlows
    together_s: float
    is_slowed: dict[bytes, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, links: Links) -> Self:
        transfers = job.transfers.transfer_of.tolist()
        first_flows: dict[tuple[float, int], FlowKey] = {}
        number_of: dict[tuple[float, int], int] = {}
        kinds = [(flow.offset_s, transfer) for flow, transfer in zip(job.flows, transfers, strict=True)]
        for flow, kind in zip(job.flows, kinds, strict=True):
            if flow.sends:
                first_flows.setdefault(kind, flow.key)
                number_of.setdefault(kind, len(number_of))
        classes = [number_of.get(kind, 0) for kind in kinds]
        routed = RoutedFlows.of([job], [[flow.hashed_path for flow in job.flows]], links.rates_bps, [classes])
        alike = np.zeros(len(number_of), dtype=np.int64)
        return cls(links, tuple(first_flows.values()), routed, alone_s(job, routed, alike, alike, _LATENCY_S))


_lone_jobs: dict[int, tuple[weakref.ref[Job], _LoneJob]] = {}
"""By identity of the job: to compare two jobs takes longer than a decision."""


def is_slowed(job: Job, links: Links, flows: Mapping[FlowKey, FlowPlan]) -> bool:
    """Return whether a job alone is slower with the levels and orders of its flows than if all flows were alike."""
    lone = _known(job, links)
    levels, orders = (
        _ranks(np.array([each(flows[key]) for key in lone.first_flows], dtype=np.int64)) for each in (_level, _order)
    )
    if not (levels.any() or orders.any()):
        return False
    pattern = levels.tobytes() + orders.tobytes()
    if pattern not in lone.is_slowed:
        lone.is_slowed[pattern] = not alone_s(job, lone.routed, levels, orders, _LATENCY_S) < _SLOWER * lone.together_s
    return lone.is_slowed[pattern]


def _known(job: Job, links: Links) -> _LoneJob:
    number = id(job)
    reference, lone = _lone_jobs.get(number, (None, None))
    if reference is None or lone is None or reference() is not job or lone.links is not links:
        lone = _LoneJob.of(job, links)
        _lone_jobs[number] = weakref.ref(job, lambda _: _lone_jobs.pop(number, None)), lone
    return lone


def _level(plan: FlowPlan) -> int:
    return plan.level


def _order(plan: FlowPlan) -> int:
    return plan.order


def _ranks(values: IntArray) -> IntArray:
    """Return the values as whole numbers from 0 without gaps, in the same order."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
