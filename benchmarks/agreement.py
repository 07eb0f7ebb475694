"""Compares simulator and emulator: ``python benchmarks/agreement.py [SCENARIO ...] [--seeds 5] [--json]``.

Every scenario runs on both under ``ecmp`` and ``crux`` with the same seeds. A compute jitter of 2 % keeps jobs from
locking into phases that a tiny difference would change. The figure for each job is the relative difference of its mean
iteration time, over the window and the seeds, on the simulator to that on the emulator.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import provenance
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

SCENARIOS = ("fig19-n2", "fig19-n3", "fig19-n4", "fig20", "fig21", "fig22", "fewer-uplinks", "pipeline")
POLICIES = ("ecmp", "crux")
JITTER = 0.02


def measure(name: str, policy: str, seeds: int) -> dict[str, object]:
    """Run one scenario under one policy on both back ends, over the seeds from 1 on."""
    scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")
    emulated: list[RunResult] = []
    simulated: list[RunResult] = []
    for seed in range(1, seeds + 1):
        seeded = scenario.model_copy(update={"seed": seed, "compute_jitter": JITTER})
        emulated.append(asyncio.run(run_on_emulator(seeded, policy, on_progress=lambda *_: None)))
        simulated.append(run_on_simulator(seeded, policy, on_progress=lambda *_: None))
        utilisations = emulated[-1].gpu_utilisation, simulated[-1].gpu_utilisation
        print(f"{name} {policy} seed {seed}: {utilisations[0]:.4f} {utilisations[1]:.4f}", file=sys.stderr)
    before, after = _iteration_times(emulated), _iteration_times(simulated)
    return {
        "scenario": name,
        "policy": policy,
        "emulator": statistics.mean(result.gpu_utilisation for result in emulated),
        "simulator": statistics.mean(result.gpu_utilisation for result in simulated),
        "differences": {job: after[job] / before[job] - 1 for job in before},
    }


def _iteration_times(results: list[RunResult]) -> dict[str, float]:
    times: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        for job in result.jobs:
            if job.iteration_time_s is not None:
                times[job.name].append(job.iteration_time_s)
    return {job: statistics.mean(values) for job, values in times.items()}


def show(measured: dict[str, object]) -> str:
    """Return the result for one scenario and policy in one line."""
    differences = measured["differences"]
    assert isinstance(differences, dict)
    jobs = ", ".join(f"{job} {difference:+.1%}" for job, difference in differences.items())
    utilisations = f"emulator {measured['emulator']:.4f}  simulator {measured['simulator']:.4f}"
    return f"{measured['scenario']:13} {measured['policy']:5} {utilisations}  {jobs}"


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    measured = []
    for name in arguments.scenarios or SCENARIOS:
        for policy in POLICIES:
            measured.append(measure(name, policy, arguments.seeds))
            if not arguments.json:
                print(show(measured[-1]), flush=True)
    if arguments.json:
        print(json.dumps({**provenance(("numpy", "numba")), "jitter": JITTER, "scenarios": measured}))


if __name__ == "__main__":
    main()
