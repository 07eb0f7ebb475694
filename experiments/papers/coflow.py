"""The coflow benchmark: completion times on one big switch under fair sharing, FIFO, Varys and Sincronia.

The benchmark is an hour of a Facebook cluster of 150 racks. It does not come with Trainyard: see ``SOURCE``.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, seconds
from simulator.coflow_options import BPS_PER_PORT_GBPS, CoflowPolicy, Recompute
from simulator.coflows import run_coflows
from workloads.coflow_trace import CoflowTrace

SOURCE = "https://github.com/coflow/coflow-benchmark"
"""Where the benchmark, FB2010-1Hr-150-0.txt, is published."""
BENCHMARK_SHA256 = "cdd0d94d26c6ab10ce3634cf6a0f836859578e914de6b6faa980a245237dbc6e"
"""Of the benchmark's file."""
PUBLISHED_SPEEDUP = {CoflowPolicy.VARYS: 3.16}
"""How many times as fast as per-flow fair sharing in the mean a policy is at the most, as its own paper says."""

ASSUMPTIONS = (
    "One big switch: an ingress and an egress port for each rack, of 1 Gbit/s = 1024 * 2^20 bit/s as in CoflowSim; "
    "a megabyte is 2^20 bytes.",
    "Mappers share a reducer's bytes equally. Flows inside a rack use its ports; all coflows weigh the same.",
    "Fair is exact max-min between flows. FIFO orders coflows by arrival, Varys by SEBF, Sincronia by BSSI, anew "
    "whenever a coflow comes or ends; sizes are known.",
    "Varys shares by MADD with backfill; FIFO and Sincronia serve flow by flow.",
    "p95 lies between two completion times by linear interpolation.",
    "We know of no published figures in seconds for this file. Varys's paper says up to 3.16 times as fast as "
    "per-flow sharing in the mean, over all that it measured.",
    "Nothing is drawn by chance: there is no seed.",
)
_OF_RECOMPUTE = {
    Recompute.FLOW: "Rates are set anew at the end of every flow too.",
    Recompute.COFLOW: "Rates are set anew as coflows come and end; ports that a flow leaves are idle until then.",
}


@dataclass(frozen=True, slots=True)
class PolicyMeasured:
    """The completion times (CCT) of a trace's coflows under one policy."""

    policy: CoflowPolicy
    average_cct_s: float
    p95_cct_s: float
    makespan_s: float


def measure(trace: CoflowTrace, policy: CoflowPolicy, recompute: Recompute) -> PolicyMeasured:
    """Run the trace under a policy."""
    run = run_coflows(trace, policy, recompute, BPS_PER_PORT_GBPS)
    return PolicyMeasured(policy, run.average_cct_s, run.p95_cct_s, run.makespan_s)


def json_object(trace: CoflowTrace, measured: PolicyMeasured, recompute: Recompute, sha256: str) -> dict[str, object]:
    """One policy as JSON has it."""
    return {
        "evaluation": "coflow",
        "num_coflows": len(trace.names),
        "is_benchmark": sha256 == BENCHMARK_SHA256,
        "recompute": recompute,
        **asdict(measured),
        "published_speedup_over_fair": PUBLISHED_SPEEDUP.get(measured.policy),
        "assumptions": _assumptions(recompute, sha256),
    }


def findings(trace: CoflowTrace, measured: Sequence[PolicyMeasured], recompute: Recompute, sha256: str) -> Findings:
    """One or more policies, fair sharing first, beside what is published."""
    fair = measured[0]
    rows = tuple(
        (
            str(of.policy),
            seconds(of.average_cct_s),
            _times(fair.average_cct_s / of.average_cct_s),
            _published(of.policy),
            seconds(of.p95_cct_s),
            _times(fair.p95_cct_s / of.p95_cct_s),
            seconds(of.makespan_s),
        )
        for of in measured
    )
    columns = ("Policy", "Average CCT", "Speedup", "Published", "p95 CCT", "Speedup", "Makespan")
    return Findings(
        title=f"Coflow benchmark: {count(len(trace.names))} coflows, {count(trace.num_flows)} flows",
        tables=(FindingsTable("Completion times", columns, rows),),
        charts=(
            _chart("Average CCT", {of.policy: of.average_cct_s for of in measured}),
            _chart("p95 CCT", {of.policy: of.p95_cct_s for of in measured}),
        ),
        assumptions=_assumptions(recompute, sha256),
    )


def _assumptions(recompute: Recompute, sha256: str) -> tuple[str, ...]:
    file = "The file is the benchmark's" if sha256 == BENCHMARK_SHA256 else "The file is not the benchmark's"
    return (f"{file} FB2010-1Hr-150-0.txt, {SOURCE} (by its SHA-256).", *ASSUMPTIONS, _OF_RECOMPUTE[recompute])


def _published(policy: CoflowPolicy) -> str:
    published = PUBLISHED_SPEEDUP.get(policy)
    return "\N{EN DASH}" if published is None else f"up to {_times(published)}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}\N{MULTIPLICATION SIGN}"


def _chart(title: str, times_s: dict[CoflowPolicy, float]) -> BarChart:
    longest_s = max(times_s.values())
    bars = (Bar(policy, seconds(time_s), time_s / longest_s) for policy, time_s in times_s.items())
    return BarChart(title, tuple(bars))
