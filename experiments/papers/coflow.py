"""The coflow benchmark: completion times on one big switch under fair sharing, FIFO, Varys and Sincronia.

The benchmark is an hour of a Facebook cluster of 150 racks. It does not come with Trainyard: see ``SOURCE``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from experiments.papers.evaluation import Argument, Evaluation, InvalidInputError, Option
from experiments.papers.table_cells import DASH
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, seconds
from simulator.coflow_options import BPS_PER_PORT_GBPS, CoflowPolicy, Recompute
from simulator.coflows import run_coflows
from topologies.files import FileError, read_bytes
from workloads.coflow_trace import MOST_BYTES, CoflowTrace, CoflowTraceError, parse_coflow_trace

SOURCE = "https://github.com/coflow/coflow-benchmark"
"""Where the benchmark, FB2010-1Hr-150-0.txt, is published."""
BENCHMARK_SHA256 = "cdd0d94d26c6ab10ce3634cf6a0f836859578e914de6b6faa980a245237dbc6e"
"""SHA-256 of the benchmark's file."""
PUBLISHED_SPEEDUP = {CoflowPolicy.VARYS: 3.16}
"""The largest mean speedup over per-flow fair sharing that a policy's own paper reports."""

ASSUMPTIONS = (
    "One big switch: an ingress and an egress port for each rack, of 1 Gbit/s = 1024 * 2^20 bit/s as in CoflowSim; "
    "a megabyte is 2^20 bytes.",
    "Mappers share a reducer's bytes equally. Flows inside a rack use its ports; all coflows have the same weight.",
    "Fair is exact max-min between flows. FIFO orders coflows by arrival, Varys by SEBF, Sincronia by BSSI, "
    "again whenever a coflow arrives or ends; sizes are known.",
    "Varys shares by MADD with backfill; FIFO and Sincronia serve flow by flow.",
    "p95 is interpolated linearly between two completion times.",
    "We know of no published figures in seconds for this file. Varys's paper reports a mean speedup of up to 3.16 "
    "over per-flow sharing, among all its measurements.",
    "Nothing is random: there is no seed.",
)
_OF_RECOMPUTE = {
    Recompute.FLOW: "Rates are also recomputed at the end of every flow.",
    Recompute.COFLOW: "Rates are recomputed as coflows arrive and end; ports that a flow leaves stay idle until then.",
}


@dataclass(frozen=True, slots=True)
class PolicyMeasured:
    """The completion times (CCT) of a trace's coflows under one policy."""

    policy: CoflowPolicy
    average_cct_s: float
    p95_cct_s: float
    makespan_s: float


def _published(policy: CoflowPolicy) -> str:
    published = PUBLISHED_SPEEDUP.get(policy)
    return DASH if published is None else f"up to {_times(published)}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}\N{MULTIPLICATION SIGN}"


def _chart(title: str, times_s: dict[CoflowPolicy, float]) -> BarChart:
    longest_s = max(times_s.values())
    bars = (Bar(policy, seconds(time_s), time_s / longest_s) for policy, time_s in times_s.items())
    return BarChart(title, tuple(bars))


@dataclass(frozen=True, eq=False)
class CoflowCase:
    """The trace under one policy."""

    trace: CoflowTrace
    policy: CoflowPolicy
    recompute: Recompute

    def __str__(self) -> str:
        return str(self.policy)


@dataclass(frozen=True)
class CoflowBenchmark(Evaluation[CoflowCase, PolicyMeasured, PolicyMeasured]):
    """The evaluation ``coflow``."""

    unit = "policies"

    file: Annotated[Path, Argument("FILE", "Trace in the format of the coflow benchmark or of Sincronia.")]
    recompute: Annotated[
        Recompute, Option("When to recompute rates: as coflows arrive and end, or also at the end of every flow.")
    ] = Recompute.FLOW

    @cached_property
    def _octets(self) -> bytes:
        # Read once: it may be a pipe.
        try:
            return read_bytes(self.file, MOST_BYTES)
        except FileError as error:
            raise InvalidInputError((str(error),)) from error

    @property
    def _is_benchmark(self) -> bool:
        return hashlib.sha256(self._octets).hexdigest() == BENCHMARK_SHA256

    @property
    def _assumptions(self) -> tuple[str, ...]:
        file = "The file is the benchmark's" if self._is_benchmark else "The file is not the benchmark's"
        words = f"{file} FB2010-1Hr-150-0.txt, {SOURCE} (by its SHA-256)."
        warnings = () if self._trace.warning is None else (f"In this file {self._trace.warning}.",)
        return (words, *warnings, *ASSUMPTIONS, _OF_RECOMPUTE[self.recompute])

    @cached_property
    def _trace(self) -> CoflowTrace:
        try:
            return parse_coflow_trace(self._octets.decode())
        except UnicodeDecodeError as error:
            raise InvalidInputError((f"{self.file}: is not text",)) from error
        except CoflowTraceError as error:
            raise InvalidInputError((f"{self.file}: {error}",)) from error

    def cases(self) -> Sequence[CoflowCase]:
        """Return a case for every policy."""
        return [CoflowCase(self._trace, policy, self.recompute) for policy in CoflowPolicy]

    @staticmethod
    def measure(case: CoflowCase) -> PolicyMeasured:
        """Run the trace under the case's policy."""
        run = run_coflows(case.trace, case.policy, case.recompute, BPS_PER_PORT_GBPS)
        return PolicyMeasured(case.policy, run.average_cct_s, run.p95_cct_s, run.makespan_s)

    def combine(self, cases: Sequence[CoflowCase], results: Mapping[CoflowCase, PolicyMeasured]) -> PolicyMeasured:
        """Return the result of one policy."""
        return results[cases[0]]

    def json_object(self, measured: PolicyMeasured) -> dict[str, object]:
        """Return the JSON object of one policy."""
        return {
            "evaluation": "coflow",
            "num_coflows": len(self._trace.names),
            "is_benchmark": self._is_benchmark,
            "recompute": self.recompute,
            **asdict(measured),
            "published_speedup_over_fair": PUBLISHED_SPEEDUP.get(measured.policy),
            "assumptions": self._assumptions,
        }

    def findings(self, measured: Sequence[PolicyMeasured]) -> Findings:
        """Return completion times, with speedups over fair sharing where that is measured too."""
        fair = next((of for of in measured if of.policy is CoflowPolicy.FAIR), None)
        rows = tuple(
            (
                str(of.policy),
                seconds(of.average_cct_s),
                DASH if fair is None else _times(fair.average_cct_s / of.average_cct_s),
                _published(of.policy),
                seconds(of.p95_cct_s),
                DASH if fair is None else _times(fair.p95_cct_s / of.p95_cct_s),
                seconds(of.makespan_s),
            )
            for of in measured
        )
        columns = ("Policy", "Average CCT", "Speedup", "Published", "p95 CCT", "Speedup", "Makespan")
        return Findings(
            title=f"Coflow benchmark: {count(len(self._trace.names))} coflows, {count(self._trace.num_flows)} flows",
            tables=(FindingsTable("Completion times", columns, rows),),
            charts=(
                _chart("Average CCT", {of.policy: of.average_cct_s for of in measured}),
                _chart("p95 CCT", {of.policy: of.p95_cct_s for of in measured}),
            ),
            assumptions=self._assumptions,
        )
