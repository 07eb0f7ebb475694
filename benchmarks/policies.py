"""Measures the quality and the speed of decisions: ``python benchmarks/policies.py [--json]``.

Cuts are compared with enumerated optima and with bounds by mixed-integer programming, and the tardiness of flow groups
with its optimum (``experiments/papers/open_loop_policies.py``). The time of a decision is processor time from the
Snapshot to the whole Plan, after each of many events: a job leaves a full cluster and another one takes its place. As
in a controller, loops are compiled and the garbage collector seldom runs. BSSI is timed on the coflow benchmark, if its
file exists (``COFLOW_BENCHMARK``).
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.clusters import Cluster
from benchmarks.coflows import measure
from benchmarks.optima import FloatArray, edges_of, enumerated_k_cut, milp_k_cut
from benchmarks.orders import IntArray, Mix
from benchmarks.path_choice import path_ratios
from benchmarks.provenance import print_figures, provenance
from controller.process.latency import tune_for_latency
from experiments.papers.open_loop_policies import random_cases, tardiness_gap
from policies.crux.correction_factor import GainOptions, correction_factors
from policies.crux.max_k_cut import max_k_cut
from policies.intensity import Iteration
from policies.jit import Kernel
from policies.plan_difference import plan_difference
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.trainyard.options import InitialOrder, TrainyardOptions
from policies.trainyard.policy import trainyard
from workloads.coflow_trace import parse_coflow_trace

SEED = 1
PAPERS_ORDERS = 10
SMALL_GRAPHS, LARGE_GRAPHS = 1000, 100
MILP_LIMIT_S = 60.0
EVENTS = 200
LARGE_DECISIONS = 5
COFLOW_BENCHMARK = Path(__file__).resolve().parents[2] / "shared/data/coflow/FB2010-1Hr-150-0.txt"
"""The file of github.com/coflow/coflow-benchmark, in a folder beside the checkout."""

ORDER_LOADS = (0.3, 0.6, 0.9, 1.2, 1.8, 2.5)
ORDER_LINKS, ORDER_JOBS, ORDER_MIXES = (1, 4), 5, 15
FEW_LEVELS, LEVEL_JOBS, LEVEL_MIXES = 3, 8, 8
MANY_JOBS, MANY_LOADS, MANY_MIXES = ((12, 4), (16, 4), (24, 8), (40, 8), (60, 16)), ORDER_LOADS[1:], 8

CLUSTER_500 = Cluster(500, pods=10, tors_per_pod=8, hosts_per_tor=16, nics_per_host=8)
CLUSTER_5000 = Cluster(5000, pods=25, tors_per_pod=16, hosts_per_tor=32, nics_per_host=1)

Figures = dict[str, object]


def cuts() -> Figures:
    """Return cut weights over the optimum, by enumeration for three levels and mixed-integer programming for four."""
    chance = np.random.default_rng(SEED)
    small = [_graph(chance, int(chance.integers(5, 11))) for _ in range(SMALL_GRAPHS)]
    optima = [enumerated_k_cut(weights, 3) for weights in small]
    ratios, papers = (
        [_ratio(weights, 3, optimum, orders) for weights, optimum in zip(small, optima, strict=True)]
        for orders in (None, PAPERS_ORDERS)
    )
    large = [
        _ratio(weights, 4, milp_k_cut(weights, 4, MILP_LIMIT_S))
        for weights in (_graph(chance, 20) for _ in range(LARGE_GRAPHS))
    ]
    return {
        "max_k_cut_ratio": round(float(np.mean(ratios)), 6),
        "max_k_cut_ratio_p10": round(float(np.percentile(ratios, 10)), 6),
        "max_k_cut_ratio_worst": round(min(ratios), 6),
        "max_k_cut_ratio_10_orders": round(float(np.mean(papers)), 6),
        "max_k_cut_ratio_10_orders_worst": round(min(papers), 6),
        "max_k_cut_ratio_20_jobs": round(float(np.mean(large)), 6),
        "max_k_cut_ratio_20_jobs_worst": round(min(large), 6),
    }


def _graph(chance: np.random.Generator, size: int) -> FloatArray:
    is_edge = np.triu(chance.random((size, size)) < chance.uniform(0.1, 0.9), 1)
    return np.where(is_edge, chance.uniform(1, 100, (size, size)), np.nan)


def _ratio(weights: FloatArray, num_groups: int, optimum: float, num_orders: int | None = None) -> float:
    return max_k_cut(edges_of(weights), num_groups, SEED, num_orders)[0] / optimum if optimum > 0 else 1.0


def crux_500() -> Figures:
    """Time decisions for 500 jobs on 10,240 GPUs with a flow per NIC."""
    tune_for_latency()
    snapshot = CLUSTER_500.snapshot(SEED)
    decide(find_policy("crux"), snapshot)
    after_events = [_seconds(lambda after=after: decide(find_policy("crux"), after)) for after in _events(snapshot)]
    return {
        "crux_500_p99_s": _rounded(np.percentile(after_events, 99)),
        "crux_500_median_s": _rounded(np.median(after_events)),
        "crux_500_flows": sum(len(job.flows) for job in snapshot.jobs),
    }


def _events(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield Snapshots in each of which one job is replaced by another with the same flows and other times."""
    chance = random.Random(SEED)
    for _ in range(EVENTS):
        number = chance.randrange(len(snapshot.jobs))
        left = snapshot.jobs[number]
        compute_s = left.profile.compute_s * chance.uniform(0.5, 2)
        came = replace(left, profile=replace(left.profile, compute_s=compute_s, work=compute_s * left.gpus))
        snapshot = replace(snapshot, jobs=(*snapshot.jobs[:number], came, *snapshot.jobs[number + 1 :]))
        yield snapshot


def crux_5000() -> Figures:
    """Time decisions for 5,000 jobs on 102,400 GPUs with a flow per host and job, in a process of its own."""
    script = "from benchmarks.policies import *; print(json.dumps(crux_5000_here()))"
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return dict(json.loads(printed))


def crux_5000_here() -> Figures:
    """Time them in this process, whose whole memory counts, with that of the Snapshot."""
    decide(find_policy("crux"), CLUSTER_500.snapshot(SEED))
    snapshot = CLUSTER_5000.snapshot(SEED)
    seconds = [_seconds(lambda: decide(find_policy("crux"), snapshot)) for _ in range(LARGE_DECISIONS)]
    return {
        "crux_5000_s": _rounded(max(seconds)),
        "crux_5000_memory_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "crux_5000_flows": sum(len(job.flows) for job in snapshot.jobs),
    }


def factor_sensitivity() -> Figures:
    """Return how far k changes, as the mean ratio to its default, with other numbers of phases and iterations."""
    chance = random.Random(SEED)
    jobs = [Iteration(10 ** chance.uniform(-1, 1), chance.random(), 10 ** chance.uniform(-1, 1)) for _ in range(300)]
    chosen = np.array(correction_factors(jobs, jobs[0]))
    others = {
        "1_phase": GainOptions(num_phases=1),
        "4_phases": GainOptions(num_phases=4),
        "64_phases": GainOptions(num_phases=64),
        "no_warm_up": GainOptions(warm_up_iterations=0),
        "10_iterations": GainOptions(measured_iterations=10),
        "500_iterations": GainOptions(measured_iterations=500),
    }
    figures: Figures = {}
    for name, options in others.items():
        moved = np.abs(np.log(np.array(correction_factors(jobs, jobs[0], options)) / chosen))
        figures[f"k_moved_{name}"] = round(float(np.exp(moved.mean()) - 1), 4)
        figures[f"k_moved_{name}_p90"] = round(float(np.exp(np.percentile(moved, 90)) - 1), 4)
    return figures


def orders() -> Figures:
    """Return the computation per second over that of the best strict order on random mixes, mean and worst."""
    chance = np.random.default_rng(SEED)
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for load in ORDER_LOADS:
        for num_links in ORDER_LINKS:
            for _ in range(ORDER_MIXES):
                mix = Mix.draw(chance, ORDER_JOBS, num_links, load)
                values_by_order = mix.all_orders()
                best = max(values_by_order.values())
                for name, urgency in _urgencies(mix).items():
                    ratios[f"order_{name}"].append(mix.value(urgency) / best)
                    ratios[f"order_{name}_load_{load}"].append(ratios[f"order_{name}"][-1])
    figures: Figures = {}
    for name, values in ratios.items():
        figures[name] = _digits(np.mean(values))
        if "load" not in name:
            figures[f"{name}_worst"] = _digits(min(values))
    return figures


def _urgencies(mix: Mix) -> dict[str, IntArray]:
    """Return the urgencies of a mix's jobs by W/t, Crux's k W/t, Smith's rule, and variants of ``trainyard``."""
    snapshot = mix.snapshot()

    def by(values: FloatArray) -> IntArray:
        return np.argsort(np.argsort(values, kind="stable"))

    def planned(options: TrainyardOptions) -> IntArray:
        places = {key.job: flow.order for key, flow in trainyard(snapshot, options).flows.items()}
        return len(places) - np.array([places[job.name] for job in snapshot.jobs])

    window_s = np.maximum(mix.compute_s - mix.ready_s, mix.seconds.max(axis=1))
    duration_s = np.array([iteration.duration_s for iteration in mix.isolated])
    crux_ranks = {job.name: job.rank for job in decide(find_policy("crux"), snapshot).jobs}
    return {
        "intensity": by(mix.work / mix.seconds.max(axis=1)),
        "crux": len(crux_ranks) - np.array([crux_ranks[job.name] for job in snapshot.jobs]),
        "smith": by(mix.work / duration_s / window_s),
        "trainyard_first": planned(TrainyardOptions(evaluations=0, initial_orders=(InitialOrder.FLUID_BOUND,))),
        "trainyard_one_start": planned(TrainyardOptions(initial_orders=(InitialOrder.FLUID_BOUND,))),
        "trainyard_from_crux": planned(TrainyardOptions(initial_orders=(InitialOrder.CRUX,))),
        "trainyard": planned(TrainyardOptions()),
    }


def levels() -> Figures:
    """Return the computation per second with few levels over that of the strict order."""
    chance = np.random.default_rng(SEED)
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for load in ORDER_LOADS:
        for num_links in ORDER_LINKS:
            for _ in range(LEVEL_MIXES):
                mix = Mix.draw(chance, LEVEL_JOBS, num_links, load)
                strict = _value(mix, "trainyard", LEVEL_JOBS)
                for policy in ("trainyard", "crux"):
                    ratios[policy].append(_value(mix, policy, FEW_LEVELS) / strict)
    return {
        f"levels_{FEW_LEVELS}_{policy}{suffix}": _digits(figure)
        for policy, values in ratios.items()
        for suffix, figure in (("", np.mean(values)), ("_worst", min(values)))
    }


def many() -> Figures:
    """Return the computation per second over that of ``crux``, for many jobs with eight levels."""
    chance = np.random.default_rng(SEED)
    figures: Figures = {}
    for num_jobs, num_links in MANY_JOBS:
        mixes = [Mix.draw(chance, num_jobs, num_links, load) for load in MANY_LOADS for _ in range(MANY_MIXES)]
        ratios = [_value(mix, "trainyard", 8) / _value(mix, "crux", 8) for mix in mixes]
        figures[f"many_{num_jobs}_trainyard_over_crux"] = _digits(np.mean(ratios))
        figures[f"many_{num_jobs}_trainyard_over_crux_worst"] = _digits(min(ratios))
    return figures


def _value(mix: Mix, policy: str, num_levels: int) -> float:
    plan = decide(find_policy(policy), mix.snapshot(num_levels))
    level = {job.name: job.level for job in plan.jobs}
    return mix.value(np.array([level[str(number)] for number in range(len(mix.work))]))


def paths() -> Figures:
    """Return how far each rule's paths are below the best paths on small fabrics: mean, p90 and maximum."""
    figures: Figures = {}
    for rule, ratios in path_ratios(SEED).items():
        missing = 1 - np.array(ratios)
        figures[f"paths_{rule}_gap"] = _digits(missing.mean())
        figures[f"paths_{rule}_gap_p90"] = _digits(np.percentile(missing, 90))
        figures[f"paths_{rule}_gap_max"] = _digits(missing.max())
    return figures


def trainyard_500() -> Figures:
    """Time decisions after each event on the cluster of 500 jobs, with the Plan in force as previous."""
    tune_for_latency()
    Kernel.compile_all()
    snapshot = CLUSTER_500.snapshot(SEED)
    plan = decide(find_policy("trainyard"), snapshot)
    full_s = _seconds(lambda: decide(find_policy("trainyard"), snapshot))
    seconds, moved, changed = [], [], []
    for after in _events(snapshot):
        after = replace(after, previous=plan)
        seconds.append(_seconds(lambda after=after: decide(find_policy("trainyard"), after)))
        before, plan = plan, decide(find_policy("trainyard"), after)
        difference = plan_difference(before, plan)
        moved.append(len(difference.moved))
        changed.append(len(difference.levels))
    return {
        "trainyard_incremental_p99_s": _rounded(np.percentile(seconds, 99)),
        "trainyard_incremental_median_s": _rounded(np.median(seconds)),
        "trainyard_500_full_s": _rounded(full_s),
        "trainyard_500_moved_flows_mean": _digits(np.mean(moved)),
        "trainyard_500_level_changes_mean": _digits(np.mean(changed)),
    }


def _digits(value: float) -> float:
    return round(float(value), 4)


def _seconds(decision: Callable[[], object]) -> float:
    start_s = time.process_time()
    decision()
    return time.process_time() - start_s


def _rounded(seconds: float) -> float:
    return round(float(seconds), 4)


def bssi_526() -> Figures:
    """Time BSSI on 526 coflows of one hour of a cluster; None where the file is absent."""
    if not COFLOW_BENCHMARK.exists():
        return {"bssi_526_s": None}
    return {"bssi_526_s": _rounded(measure(parse_coflow_trace(COFLOW_BENCHMARK.read_text()))["bssi_526_s"])}


def tardiness() -> Figures:
    """Return the tardiness of EchelonFlow and other policies beyond the optimum."""
    gaps = list(map(tardiness_gap, random_cases(SEED)))
    figures: Figures = {}
    for name in gaps[0]:
        of_policy = [case[name] for case in gaps]
        figures |= {
            f"tardiness_gap_{name}_mean": round(float(np.mean(of_policy)), 4),
            f"tardiness_gap_{name}_p90": round(float(np.percentile(of_policy, 90)), 4),
            f"tardiness_gap_{name}_max": round(max(of_policy), 4),
        }
    return figures


MEASUREMENTS: tuple[Callable[[], Figures], ...] = (
    cuts,
    factor_sensitivity,
    tardiness,
    bssi_526,
    orders,
    levels,
    many,
    paths,
    crux_500,
    trainyard_500,
    crux_5000,
)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    names = [measurement.__name__ for measurement in MEASUREMENTS]
    parser.add_argument("--only", choices=names, action="append", help="measure only this; may be repeated")
    arguments = parser.parse_args()
    figures: Figures = {}
    for measurement in MEASUREMENTS:
        if arguments.only and measurement.__name__ not in arguments.only:
            continue
        figures |= measurement()
    figures |= {"seed": SEED, **provenance(("numba", "numpy", "scipy"))}
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
