"""What job events change under each policy, rule by rule, and what ``trainyard`` pays for changing less."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from experiments.papers.job_events import EventChange, job_events
from experiments.papers.random_jobs import MEAN_DURATION_S, MEAN_INTERVAL_S, FabricName, random_arrivals
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, signed
from policies.plan import Plan
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.policy import trainyard

DEFAULT_GAIN = TrainyardOptions().least_gain
GAINS = (0.0, DEFAULT_GAIN, 0.05)
"""Thresholds of damping: what gains less over what is in force is not done; 0 is none."""


def _anew(snapshot: Snapshot) -> Plan:
    return trainyard(replace(snapshot, previous=None))


VARIANTS: Mapping[str, Callable[[Snapshot], Plan]] = {
    **{name: partial(decide, find_policy(name)) for name in ("ecmp", "crux", "sincronia", "echelonflow")},
    **{f"trainyard, {gain:.0%}": partial(trainyard, options=TrainyardOptions(least_gain=gain)) for gain in GAINS},
    "trainyard anew": _anew,
}
"""Policies by name; ``trainyard`` with each threshold, and with no regard for what is in force."""
UNDAMPED = "trainyard, 0%"
_DASH = "\N{EN DASH}"

ASSUMPTIONS = (
    "The fabrics are those of Crux's testbed (fig20: 6 ToRs, 8 aggregation switches, 12 hosts of 8 GPUs) and the same "
    "with half the aggregation switches (fewer-uplinks), where jobs have to share.",
    "Jobs are drawn (experiments/papers/random_jobs.py): GPT on 16, 32 or 48 GPUs, BERT on 8 or 16, ResNet on 8 or "
    "16, hosts at random of those with room. Who finds no room does not come.",
    f"They come every {MEAN_INTERVAL_S:.0f} s and stay {MEAN_DURATION_S:.0f} s in the mean, both exponential. An event "
    "is an arrival or a departure; seeds count from 1 and are that of jobs, the fabric's hash and policies.",
    "Rules are flow rules, over all switches, as the controller writes them: the difference to those held. Of staying "
    "jobs: of those that neither come nor go with the event; of these are moved flows and changed levels, too.",
    "A percentage behind trainyard is its least_gain: what gains less by its model is not done "
    "(docs/trainyard-policy.md). Anew: without regard for what is in force.",
    "The modelled utilisation is that of trainyard's own model, in the mean over events; other policies have none.",
    "Nothing runs between events, so that no iteration is slower for them.",
)


@dataclass(frozen=True, slots=True)
class Course:
    """Jobs that come and go, drawn by a seed, under one of ``VARIANTS``."""

    variant: str
    fabric: FabricName
    seed: int
    num_jobs: int

    def __str__(self) -> str:
        return f"{self.variant} on {self.fabric}, seed {self.seed}"


def changes(course: Course) -> tuple[EventChange, ...]:
    """What every event changes."""
    scenario = random_arrivals(course.seed, course.fabric, course.num_jobs)
    return tuple(job_events(scenario, VARIANTS[course.variant]))


@dataclass(frozen=True, slots=True)
class PerEvent:
    """A count over events."""

    mean: float
    p50: float
    p99: float

    @classmethod
    def of(cls, counts: Sequence[int]) -> "PerEvent":
        """Of at least one; percentiles by linear interpolation."""
        p50, p99 = np.percentile(counts, (50, 99)).tolist()
        return cls(statistics.mean(counts), p50, p99)


@dataclass(frozen=True, slots=True)
class VariantMeasured:
    """All events of all seeds on one fabric under one variant; rules by what is done with them in the mean."""

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


def measured(fabric: FabricName, variant: str, by_seed: Mapping[int, Sequence[EventChange]]) -> VariantMeasured:
    """What one or more seeds show."""
    events = [event for seed in sorted(by_seed) for event in by_seed[seed]]
    modelled = [event.modelled_gpu_utilisation for event in events if event.modelled_gpu_utilisation is not None]
    return VariantMeasured(
        fabric=fabric,
        variant=variant,
        seeds=tuple(sorted(by_seed)),
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


def json_object(of: VariantMeasured) -> dict[str, object]:
    """A variant as JSON has it."""
    return {"evaluation": "churn", **asdict(of), "assumptions": ASSUMPTIONS}


def findings(variants: Sequence[VariantMeasured]) -> Findings:
    """One or more variants."""
    num_events, num_seeds = max(of.num_events for of in variants), max(len(of.seeds) for of in variants)
    return Findings(
        title=f"Churn: {count(num_events)} events of {num_seeds} {'seed' if num_seeds == 1 else 'seeds'}",
        tables=(_kinds(variants), _spreads(variants), _modelled(variants)),
        charts=tuple(_chart(fabric, [of for of in variants if of.fabric is fabric]) for fabric in _fabrics(variants)),
        assumptions=ASSUMPTIONS,
    )


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
        "Per event, mean/p50/p99: rules, those of staying jobs, flows moved, levels changed", columns, rows
    )


def _modelled(variants: Sequence[VariantMeasured]) -> FindingsTable:
    """What damping costs by the model."""
    undamped = {of.fabric: of.modelled_gpu_utilisation for of in variants if of.variant == UNDAMPED}
    rows = tuple(
        (of.fabric, of.variant, percent(value), _DASH if without is None else f"{signed((value - without) * 100, 2)}")
        for of in variants
        if (value := of.modelled_gpu_utilisation) is not None
        for without in (undamped.get(of.fabric),)
    )
    return FindingsTable("Modelled GPU utilisation", ("Fabric", "Policy", "Modelled", "Points against 0%"), rows)


def _mean_p50_p99(of: PerEvent) -> str:
    return f"{of.mean:.1f}/{of.p50:.0f}/{of.p99:.0f}"


def _fabrics(variants: Iterable[VariantMeasured]) -> list[FabricName]:
    return list(dict.fromkeys(of.fabric for of in variants))


def _chart(fabric: FabricName, variants: Sequence[VariantMeasured]) -> BarChart:
    most = max(of.of_staying_jobs.mean for of in variants) or 1.0
    bars = (Bar(of.variant, f"{of.of_staying_jobs.mean:.1f}", of.of_staying_jobs.mean / most) for of in variants)
    return BarChart(f"{fabric}: rules written for staying jobs, mean of an event", tuple(bars))
