"""Measures the speed of the simulator: ``python benchmarks/simulator.py [FILE] [--json]``.

FILE is FB2010-1Hr-150-0.txt of github.com/coflow/coflow-benchmark, with 526 coflows of 706,397 flows on 150 racks;
without it, coflows are left out. The trace is generated as by ``trainyard generate-trace``: 5,180 jobs over two weeks
on the assumed fabric of 2,768 GPUs. Every iteration is computed for the day on which most jobs arrive. All times are
processor times of one core, with reading files; ``compilation_s`` is the compilation before. The results beside the
times are the same on any machine.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from experiments.traces.results import TraceResult
from experiments.traces.run import TraceOptions, run_trace
from experiments.traces.steady_state import ACCURATE
from simulator.coflow_options import CoflowPolicy, Recompute
from simulator.coflows import run_coflows
from workloads.coflow_trace import parse_coflow_trace
from workloads.schedulers.admission import admit_in_order
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.cluster import Place
from workloads.traces.assumptions import load_assumptions
from workloads.traces.generator import generate_trace
from workloads.traces.lingjun_writer import write_trace
from workloads.traces.simulated_jobs import SimulatedJob
from workloads.traces.statistics import summarise

PORT_BPS = 2.0**30
SMALL_TRACE = "3 2\na 0 1 0 2 1:5 2:3\nb 10 2 0 1 1 1:4\n"

RUNS = {
    "coflow_varys": (CoflowPolicy.VARYS, Recompute.COFLOW),
    "coflow_varys_flow": (CoflowPolicy.VARYS, Recompute.FLOW),
    "coflow_fair": (CoflowPolicy.FAIR, Recompute.FLOW),
    "coflow_sincronia_flow": (CoflowPolicy.SINCRONIA, Recompute.FLOW),
    "coflow_fifo_flow": (CoflowPolicy.FIFO, Recompute.FLOW),
}


DAY_S = 86_400.0
PLACES: dict[str, Place] = {"affinity": place_by_affinity, "random": RandomPlacement(1)}
POLICIES = ("ecmp", "crux")


def measure_traces() -> dict[str, object]:
    """Run two weeks under each policy and placement, and one day with every iteration and random placement."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        write_trace(generate_trace(5180, 1), trace)
        start_s = time.process_time()
        for policy in POLICIES:
            _run_trace(trace, policy, RandomPlacement(1), TraceOptions(until_s=DAY_S))
        figures: dict[str, object] = {"trace_compilation_s": round(time.process_time() - start_s, 2)}
        slowest_s = 0.0
        for placed, place in PLACES.items():
            for policy in POLICIES:
                start_s = time.process_time()
                result = _run_trace(trace, policy, place, TraceOptions())
                taken_s = time.process_time() - start_s
                slowest_s = max(slowest_s, taken_s)
                figures[f"trace_{placed}_{policy}_s"] = round(taken_s, 2)
                figures[f"trace_{placed}_{policy}_gpu_utilisation"] = round(result.gpu_utilisation, 5)
        figures["trace_two_weeks_s"] = round(slowest_s, 2)
        figures["trace_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        figures |= _measure_day(trace)
    return figures


def _measure_day(trace: Path) -> dict[str, object]:
    """Run the jobs of the busiest day, from its beginning to its end."""
    jobs, figures = _busiest_day(_jobs(trace)), dict[str, object]()
    for name, options in (
        ("accurate", TraceOptions(until_s=DAY_S, skip=ACCURATE)),
        ("skipped", TraceOptions(until_s=DAY_S)),
    ):
        start_s = time.process_time()
        result = run_trace(jobs, load_assumptions().fabric, "ecmp", admit_in_order(RandomPlacement(1)), options)
        taken_s = time.process_time() - start_s
        figures[f"trace_day_{name}_s"] = round(taken_s, 2)
        figures[f"trace_day_{name}_gpu_utilisation"] = round(result.gpu_utilisation, 5)
        if name == "accurate":
            figures["trace_day_events"] = result.counts.events
            figures["trace_day_events_per_s"] = round(result.counts.events / taken_s)
    return figures


def _run_trace(trace: Path, policy: str, place: Place, options: TraceOptions) -> TraceResult:
    return run_trace(_jobs(trace), load_assumptions().fabric, policy, admit_in_order(place), options)


def _jobs(trace: Path) -> Sequence[SimulatedJob]:
    return summarise(trace, load_assumptions()).jobs


def _busiest_day(jobs: Sequence[SimulatedJob]) -> list[SimulatedJob]:
    """Return the jobs of the day on which most arrive, with arrival times from its beginning."""
    days = [int(job.request.arrival_s // DAY_S) for job in jobs]
    day = max(set(days), key=days.count)
    return [
        replace(job, request=replace(job.request, arrival_s=job.request.arrival_s - day * DAY_S))
        for job, on in zip(jobs, days, strict=True)
        if on == day
    ]


def measure(path: Path) -> dict[str, object]:
    """Run each coflow policy once, after compilation."""
    start_s = time.process_time()
    for policy, recompute in RUNS.values():
        run_coflows(parse_coflow_trace(SMALL_TRACE), policy, recompute, PORT_BPS)
    figures: dict[str, object] = {"compilation_s": round(time.process_time() - start_s, 2)}
    for name, (policy, recompute) in RUNS.items():
        start_s = time.process_time()
        run = run_coflows(parse_coflow_trace(path.read_text()), policy, recompute, PORT_BPS)
        figures |= {
            f"{name}_s": round(time.process_time() - start_s, 2),
            f"{name}_average_cct_s": round(run.average_cct_s, 4),
            f"{name}_p95_cct_s": round(run.p95_cct_s, 4),
            f"{name}_makespan_s": round(run.makespan_s, 4),
        }
    return figures


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures = measure_traces() | (measure(arguments.file) if arguments.file else {})
    print_figures(figures | provenance(("numba", "numpy", "scipy")), as_json=arguments.json)


if __name__ == "__main__":
    main()
