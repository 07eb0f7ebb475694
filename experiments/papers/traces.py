"""Runs of a trace under a policy and a job scheduler: what all evaluations of traces share."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Annotated

from experiments.papers.evaluation import (
    Argument,
    Evaluation,
    InvalidInputError,
    Option,
    require_positive,
)
from experiments.traces.results import TraceResult
from experiments.traces.run import TraceOptions, run_trace
from topologies.clos import ClosSpecification
from topologies.fat_tree import DoubleSidedSpecification
from workloads.loading import ScenarioError
from workloads.schedulers.catalogue import Scheduler, admission_function
from workloads.traces import published
from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS, Assumptions, load_assumptions
from workloads.traces.csv_rows import TraceError
from workloads.traces.generator import generate_trace
from workloads.traces.lingjun_writer import write_trace
from workloads.traces.statistics import TraceSummary, summarise
from workloads.traces.variants import Variant, varied

DAY_S = 86_400.0

MADE_UP = (
    "The trace is generated: sizes, durations, arrivals and models each have the distribution published for Lingjun's; "
    "their joint distribution is assumed (docs/traces.md). Its placement is not used."
)
ASSUMPTIONS = (
    "The paper gives neither models' compute times and volumes nor link rates nor hosts per ToR: these are from "
    "workloads/traces/assumptions.yaml, or the file given. The labels of four fifths of the jobs do not name a model; "
    "it is chosen by their GPUs.",
    "A job has its logged run time over its ideal iteration time as its number of iterations, so slower iterations "
    "keep it longer. A job that finds no free GPUs waits, first come, first served. Only under Muri do jobs share "
    "GPUs.",
    "Flows are fluid: max-min fair within a level, strict priority between eight levels, no congestion control. "
    "Policies decide when jobs that send arrive or depart; the plan is in force 0.01 s later.",
    '"Of allocated" weights every allocated GPU-second the same. "Mean over time" is the mean share of allocated GPUs '
    "that compute, over intervals of ten minutes in which any is allocated. The paper's figures differ, and it does "
    "not say which it uses.",
    "Between events, exact cycles are repeated and steady rates extrapolated (docs/traces.md).",
)
"""The assumptions of every evaluation of a trace."""


class TraceTopology(StrEnum):
    """The paper's two topologies (section 6.1), and one with less capacity.

    ``CLOS`` is the topology of the assumptions: in the shipped file 173 ToRs and 16 aggregation switches.
    ``THIN_CLOS`` is not the paper's: it has a quarter of these aggregation switches, so that jobs have to share.
    """

    CLOS = "clos"
    DOUBLE_SIDED = "double-sided"
    THIN_CLOS = "thin-clos"


DOUBLE_SIDED = DoubleSidedSpecification(
    kind="double_sided",
    pods=3,
    tors=6,
    aggs=12,
    cores=32,
    hosts_per_pair=116,
    gpus_per_host=8,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=8,
    core_link_gbps=100,
)
"""Has two hosts more than the Clos, and the same cables of 100 Gbit/s: as many between a ToR and an aggregation switch
as a ToR has ports for. Hosts can send a ToR 14 times what it can forward. The paper gives neither hosts nor rates."""

THIN_CLOS = ClosSpecification(
    kind="clos",
    tors=173,
    aggs=4,
    hosts_per_tor=2,
    gpus_per_host=8,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
)
"""Hosts can send a ToR four times what it can forward; a single flow can still use all of its NIC's rate."""


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A trace and what is assumed of it.

    ``folder`` holds the trace; without one a trace is generated from the seed. ``assumptions`` is a file, the shipped
    one if None. The seed is also that of the fabric's ECMP hash, of the policies and of random placement.
    """

    folder: Path | None
    seed: int
    assumptions: Path | None
    topology: TraceTopology

    def assumed(self) -> Assumptions:
        """Read the assumptions, on the topology. Raises ScenarioError."""
        assumptions = load_assumptions(self.assumptions or SHIPPED_ASSUMPTIONS)
        match self.topology:
            case TraceTopology.CLOS:
                return assumptions
            case TraceTopology.DOUBLE_SIDED:
                return assumptions.on(DOUBLE_SIDED)
            case TraceTopology.THIN_CLOS:
                return assumptions.on(THIN_CLOS)


def load(source: TraceSource, variant: Variant = Variant.AS_ASSUMED) -> tuple[Assumptions, TraceSummary]:
    """Read a trace under a variant of its assumptions, or return it where it was the last one read.

    Raises:
        TraceError: The folder holds no valid trace.
        ScenarioError: The assumptions are invalid.
        OSError: A generated trace cannot be written.
    """
    return _load(source if source.folder is None else replace(source, seed=0), variant)


@lru_cache(maxsize=1)
def _load(source: TraceSource, variant: Variant) -> tuple[Assumptions, TraceSummary]:
    assumed = varied(source.assumed(), variant)
    with _folder(source) as folder:
        return assumed, summarise(folder, assumed)


@contextmanager
def _folder(source: TraceSource) -> Iterator[Path]:
    if source.folder is not None:
        yield source.folder
        return
    with TemporaryDirectory(prefix="trainyard-") as generated:
        write_trace(generate_trace(published.NUM_JOBS, source.seed), Path(generated))
        yield Path(generated)


def read_assumptions(source: TraceSource) -> Assumptions:
    """Read the assumptions. Raises InvalidInputError where they are invalid."""
    try:
        return source.assumed()
    except ScenarioError as error:
        raise InvalidInputError(error.messages) from error


def read(source: TraceSource) -> tuple[Assumptions, TraceSummary]:
    """Read a trace as ``load`` does. Raises InvalidInputError where it cannot be used."""
    read_assumptions(source)
    try:
        assumed, summary = load(source)
    except TraceError as error:
        raise InvalidInputError((str(error),)) from error
    except OSError as error:
        raise InvalidInputError((f"{gettempdir()}: cannot be written: {error.strerror}",)) from error
    if not summary.jobs:
        raise InvalidInputError(
            (f"{source.folder}: expected jobs that ran on GPUs, none is left of the trace (trainyard trace says why)",)
        )
    return assumed, summary


def notices(summary: TraceSummary) -> Iterator[str]:
    """Say which jobs are left out."""
    if summary.too_large:
        names = ", ".join(job.request.name for job in summary.too_large)
        yield f"left out, as they need more GPUs than there are: {names}"


@dataclass(frozen=True, slots=True)
class TraceCase:
    """A run of a trace. ``until_s`` cuts it off; ``variant`` changes one of the assumptions."""

    source: TraceSource
    policy: str
    scheduler: Scheduler
    until_s: float | None
    variant: Variant = Variant.AS_ASSUMED

    def __str__(self) -> str:
        return f"{self.policy}, placed by {self.scheduler}, {self.variant}"


FolderArgument = Annotated[
    Path | None, Argument("FOLDER", "Trace in the format of Lingjun's dataset. Default: a generated trace.")
]
AssumptionsOption = Annotated[
    Path | None, Option("What a trace does not say. Default: the shipped assumptions.", metavar="FILE")
]
SchedulerOption = Annotated[Scheduler, Option("Scheduler that chooses GPUs for jobs.")]
TopologyOption = Annotated[
    TraceTopology,
    Option("clos is that of the assumptions, double-sided the paper's other one, thin-clos has less capacity."),
]
MeasuredTrace = tuple[TraceCase, TraceResult]


@dataclass(frozen=True)
class TraceEvaluation(Evaluation[TraceCase, TraceResult, MeasuredTrace]):
    """An evaluation that runs one trace under several policies, schedulers or assumptions.

    Subclasses define ``topology``, where the trace runs, and ``assumed``, their assumptions in words.
    """

    unit = "runs"

    folder: FolderArgument = None
    days: Annotated[
        float | None, Option("Number of days after which the run ends. Default: when all jobs are done.")
    ] = None
    seed: Annotated[
        int, Option("Seed of a generated trace, the ECMP hash, policies and random placement.", minimum=0)
    ] = 1
    assumptions: AssumptionsOption = None

    def __post_init__(self) -> None:
        if self.days is not None:
            require_positive("--days", self.days)

    @property
    @abstractmethod
    def topology(self) -> TraceTopology:
        """The topology to run on."""

    @property
    @abstractmethod
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of this evaluation alone, in words."""

    @abstractmethod
    def combinations(self) -> Iterable[tuple[Variant, Scheduler, str]]:
        """Return what the trace runs under, in order. Raises InvalidInputError."""

    @property
    def source(self) -> TraceSource:
        """The trace and its assumptions."""
        return TraceSource(self.folder, self.seed, self.assumptions, self.topology)

    @cached_property
    def topology_kind(self) -> str:
        """The kind of topology, as scenarios name it."""
        return self.source.assumed().topology.kind

    @property
    def subject(self) -> str:
        """The trace and the kind of topology, for titles."""
        name = f"a generated trace, seed {self.seed}," if self.folder is None else self.folder.name
        return f"{name} on {self.topology_kind}"

    @property
    def all_assumptions(self) -> tuple[str, ...]:
        """The assumptions of this evaluation and of a generated trace, in words."""
        return self.assumed if self.folder is not None else (f"{MADE_UP} Seed {self.seed}.", *self.assumed)

    def notices(self) -> Iterable[str]:
        """Say which jobs are left out."""
        return notices(read(self.source)[1])

    def cases(self) -> Sequence[TraceCase]:
        """Return a case for every combination."""
        until_s = None if self.days is None else self.days * DAY_S
        return [
            TraceCase(self.source, policy, scheduler, until_s, variant)
            for variant, scheduler, policy in self.combinations()
        ]

    @staticmethod
    def measure(case: TraceCase) -> TraceResult:
        """Run the trace. Raises ValueError where the policy cannot decide."""
        assumed, summary = load(case.source, case.variant)
        options = TraceOptions(seed=case.source.seed, until_s=case.until_s)
        return run_trace(
            summary.jobs, assumed.fabric, case.policy, admission_function(case.scheduler, case.source.seed), options
        )

    def combine(self, cases: Sequence[TraceCase], results: Mapping[TraceCase, TraceResult]) -> MeasuredTrace:
        """Return a case with its result."""
        return cases[0], results[cases[0]]
