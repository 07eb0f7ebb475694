"""Churn: the rules, paths and levels that arrivals and departures of jobs change under each policy.

``trainyard`` runs with several damping thresholds, beside the modelled utilisation that damping costs.
"""

import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from experiments.papers.evaluation import Evaluation, Option
from experiments.papers.job_events import EventChange, job_events
from experiments.papers.random_jobs import MEAN_DURATION_S, MEAN_INTERVAL_S, FabricName, random_arrivals
from experiments.papers.table_cells import DASH
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, signed
from policies.plan import Plan
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.policy import trainyard

DEFAULT_GAIN = TrainyardOptions().min_gain
GAINS = (0.0, DEFAULT_GAIN, 0.05)
"""Damping thresholds: ``trainyard`` keeps what is in force unless a change gains at least this share."""


def _without_previous(snapshot: Snapshot) -> Plan:
    return trainyard(replace(snapshot, previous=None))


VARIANTS: Mapping[str, Callable[[Snapshot], Plan]] = {
    **{name: partial(decide, find_policy(name)) for name in ("ecmp", "crux", "sincronia", "echelonflow")},
    **{f"trainyard, {gain:.0%}": partial(trainyard, options=TrainyardOptions(min_gain=gain)) for gain in GAINS},
    "trainyard anew": _without_previous,
}
"""The policies compared: ``trainyard`` with each threshold, and without regard for the plan in force."""
UNDAMPED = "trainyard, 0%"

ASSUMPTIONS = (
    "The fabrics are those of Crux's testbed (fig20: 6 ToRs, 8 aggregation switches, 12 hosts of 8 GPUs) and the same "
    "with half the aggregation switches (fewer-uplinks), where jobs have to share.",
    "Jobs are random (experiments/papers/random_jobs.py): GPT on 16, 32 or 48 GPUs, BERT on 8 or 16, ResNet on 8 or "
    "16, on random hosts with room. A job that finds no room is left out.",
    f"Jobs arrive every {MEAN_INTERVAL_S:.0f} s and stay {MEAN_DURATION_S:.0f} s on average, both exponential. An "
    "event is an arrival or a departure. A seed sets the jobs, the ECMP hash and the policies' choices; seeds start at "
    "1.",
    "Rules are flow rules over all switches: the updates that the controller writes. Staying jobs are those that "
    "neither arrive nor depart with the event; moved flows and changed levels are theirs.",
    "The percentage after trainyard is its min_gain: it makes no change that gains less by its model "
    '(docs/trainyard-policy.md). "anew" ignores the plan in force.',
    "The modelled utilisation is that of trainyard's own model, averaged over events; other policies have no model.",
    "Nothing runs between events, so no iteration slows down because of them.",
)


@dataclass(frozen=True, slots=True)
class ChurnCase:
    """A random sequence of arrivals and departures under one of ``VARIANTS``."""

    variant: str
    fabric: FabricName
    seed: int
    num_jobs: int

    def __str__(self) -> str:
        return f"{self.variant} on {self.fabric}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class PerEvent:
    """Mean and percentiles of a count over events."""

    mean: float
    p50: float
    p99: float

    @classmethod
    def of(cls, counts: Sequence[int]) -> "PerEvent":
        """Summarise one or more counts; percentiles are interpolated linearly."""
        p50, p99 = np.percentile(counts, (50, 99)).tolist()
        return cls(statistics.mean(counts), p50, p99)


@dataclass(frozen=True, slots=True)
class VariantMeasured:
    """All events of all seeds on one fabric under one variant.

    ``inserted``, ``modified`` and ``deleted`` are mean numbers of rules per event.
    """

    fabric: FabricName
    variant: str
    seeds: tuple[int, ...]
    num_events: int
    inserted: float
    modified: float
    deleted: float
    rules: PerEvent
    of_staying_jobs: PerEvent
    moved_flows: PerEvent
    level_changes: PerEvent
    modelled_gpu_utilisation: float | None


def _kinds(variants: Iterable[VariantMeasured]) -> FindingsTable:
    rows = tuple(
        (
            of.fabric,
            of.variant,
            count(of.num_events),
            *(f"{value:.1f}" for value in (of.inserted, of.modified, of.deleted)),
        )
        for of in variants
    )
    return FindingsTable(
        "Rules per event, mean", ("Fabric", "Policy", "Events", "Inserted", "Modified", "Deleted"), rows
    )


def _spreads(variants: Iterable[VariantMeasured]) -> FindingsTable:
    rows = tuple(
        (of.fabric, of.variant, *map(_mean_p50_p99, (of.rules, of.of_staying_jobs, of.moved_flows, of.level_changes)))
        for of in variants
    )
    columns = ("Fabric", "Policy", "Rules", "Staying", "Moved", "Levels")
    return FindingsTable(
        "Per event, mean/p50/p99: rules, rules of staying jobs, moved flows, changed levels", columns, rows
    )


def _modelled(variants: Sequence[VariantMeasured]) -> FindingsTable:
    """Return the table of what damping costs by the model."""
    undamped = {of.fabric: of.modelled_gpu_utilisation for of in variants if of.variant == UNDAMPED}
    rows = tuple(
        (of.fabric, of.variant, percent(value), DASH if without is None else f"{signed((value - without) * 100, 2)}")
        for of in variants
        if (value := of.modelled_gpu_utilisation) is not None
        for without in (undamped.get(of.fabric),)
    )
    return FindingsTable("Modelled GPU utilisation", ("Fabric", "Policy", "Modelled", "Points over 0%"), rows)


def _mean_p50_p99(of: PerEvent) -> str:
    return f"{of.mean:.1f}/{of.p50:.0f}/{of.p99:.0f}"


def _chart(fabric: FabricName, variants: Sequence[VariantMeasured]) -> BarChart:
    most = max(of.of_staying_jobs.mean for of in variants) or 1.0
    bars = (Bar(of.variant, f"{of.of_staying_jobs.mean:.1f}", of.of_staying_jobs.mean / most) for of in variants)
    return BarChart(f"{fabric}: rules written for staying jobs, mean per event", tuple(bars))


@dataclass(frozen=True)
class Churn(Evaluation[ChurnCase, tuple[EventChange, ...], VariantMeasured]):
    """The evaluation ``churn``."""

    unit = "job sequences"

    seeds: Annotated[int, Option("Number of job sequences, with seeds starting at 1.", minimum=1)] = 5
    jobs: Annotated[int, Option("Number of jobs in each sequence.", minimum=1, maximum=10_000)] = 50

    def cases(self) -> Sequence[ChurnCase]:
        """Return the cases seed by seed, so that an evaluation that ends early has results for every variant."""
        return [
            ChurnCase(variant, fabric, seed, self.jobs)
            for seed in range(1, self.seeds + 1)
            for fabric in FabricName
            for variant in VARIANTS
        ]

    @staticmethod
    def measure(case: ChurnCase) -> tuple[EventChange, ...]:
        """Return the changes of every event."""
        return tuple(job_events(random_arrivals(case.seed, case.fabric, case.num_jobs), VARIANTS[case.variant]))

    def group(self, case: ChurnCase) -> Hashable:
        """Report the seeds of a variant together."""
        return case.fabric, case.variant

    def combine(
        self, cases: Sequence[ChurnCase], results: Mapping[ChurnCase, tuple[EventChange, ...]]
    ) -> VariantMeasured:
        """Combine the events of all seeds."""
        events = [event for case in cases for event in results[case]]
        modelled = [event.modelled_gpu_utilisation for event in events if event.modelled_gpu_utilisation is not None]
        return VariantMeasured(
            fabric=cases[0].fabric,
            variant=cases[0].variant,
            seeds=tuple(case.seed for case in cases),
            num_events=len(events),
            inserted=statistics.mean(event.inserted for event in events),
            modified=statistics.mean(event.modified for event in events),
            deleted=statistics.mean(event.deleted for event in events),
            rules=PerEvent.of([event.rules for event in events]),
            of_staying_jobs=PerEvent.of([event.of_staying_jobs for event in events]),
            moved_flows=PerEvent.of([event.moved_flows for event in events]),
            level_changes=PerEvent.of([event.level_changes for event in events]),
            modelled_gpu_utilisation=statistics.mean(modelled) if modelled else None,
        )

    def json_object(self, measured: VariantMeasured) -> dict[str, object]:
        """Return the JSON object of a variant."""
        return {"evaluation": "churn", **asdict(measured), "assumptions": ASSUMPTIONS}

    def findings(self, measured: Sequence[VariantMeasured]) -> Findings:
        """Return the findings of all variants."""
        num_events, num_seeds = max(of.num_events for of in measured), max(len(of.seeds) for of in measured)
        return Findings(
            title=f"Churn: {count(num_events)} events of {num_seeds} {'seed' if num_seeds == 1 else 'seeds'}",
            tables=(_kinds(measured), _spreads(measured), _modelled(measured)),
            charts=tuple(
                _chart(fabric, variants)
                for fabric in FabricName
                if (variants := [of for of in measured if of.fabric is fabric])
            ),
            assumptions=ASSUMPTIONS,
        )
