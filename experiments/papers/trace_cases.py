"""A trace in a folder under a policy and a scheduler: what the evaluations of traces run, each case by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from experiments.papers.trace_topologies import TraceTopology, assumed_on
from experiments.report.findings import Findings
from experiments.traces.results import TraceResult
from experiments.traces.run import TraceOptions, run_trace
from policies.registry import load_policy
from workloads.schedulers.catalogue import admit_by
from workloads.schedulers.scheduler_name import Scheduler
from workloads.traces.assumptions import Assumptions, load_assumptions
from workloads.traces.summary import TraceSummary, summarise
from workloads.traces.variants import Variant, varied

DAY_S = 86_400.0

MADE_UP = (
    "The trace is made up: sizes, durations, arrivals and models have the distributions published of Lingjun's, one by "
    "one; what joins them is assumed (docs/traces.md). Its placement is not used."
)
ASSUMPTIONS = (
    "The paper gives neither models' compute times and volumes nor link rates nor hosts per ToR: those are of "
    "workloads/traces/assumptions.yaml, or the file given. Four fifths of the jobs have labels that say nothing; their "
    "models are chosen by their GPUs.",
    "A job's work is its logged run time over its ideal iteration's: slower iterations keep it longer. Who finds "
    "no GPUs free waits; but for Muri nobody shares GPUs, and first come is first served.",
    "Flows are fluid: max-min inside a level, strict priority between eight levels, no congestion control. Decided is "
    "when jobs that send come or go, in force 0.01 s later.",
    "Of allocated weighs every allocated GPU-second the same; mean over time is that of shares of allocated GPUs that "
    "compute, in intervals of ten minutes in which any is allocated. The paper's figures disagree and say neither.",
    "Between events, exact cycles are repeated and steady rates extrapolated (docs/traces.md).",
)
"""Of every evaluation of a trace."""


@dataclass(frozen=True, slots=True)
class TraceCase:
    """One run: ``until_s`` cuts it off, ``seed`` is that of the fabric's hash, of policies and of random placement.

    ``variant`` is what of the assumptions is changed.
    """

    folder: Path
    assumptions: Path
    topology: TraceTopology
    policy: str
    scheduler: Scheduler
    seed: int
    until_s: float | None
    variant: Variant = Variant.AS_ASSUMED

    def __str__(self) -> str:
        return f"{self.policy}, placed by {self.scheduler}, {self.variant}"


def measure(case: TraceCase) -> TraceResult:
    """Run it. Raises ValueError where the policy cannot decide; see ``load``."""
    assumptions, summary = load(case.folder, case.assumptions, case.topology, case.variant)
    options = TraceOptions(seed=case.seed, until_s=case.until_s)
    return run_trace(
        summary.jobs, assumptions.fabric, load_policy(case.policy), admit_by(case.scheduler, case.seed), options
    )


@lru_cache(maxsize=1)
def load(
    folder: Path, assumptions: Path, topology: TraceTopology, variant: Variant
) -> tuple[Assumptions, TraceSummary]:
    """What a process reads once for all its cases of a variant. Raises TraceError, ScenarioError."""
    assumed = varied(assumed_on(topology, load_assumptions(assumptions)), variant)
    return assumed, summarise(folder, assumed)


@dataclass(frozen=True, slots=True)
class TraceEvaluation:
    """What an evaluation makes of its runs: an object of each, given the kind of topology and what is assumed; and
    findings of those that are finished, given the trace's name as well."""

    assumptions: tuple[str, ...]
    json_object: Callable[[TraceCase, TraceResult, str, tuple[str, ...]], dict[str, object]]
    findings: Callable[[Mapping[TraceCase, TraceResult], str, str, tuple[str, ...]], Findings]
