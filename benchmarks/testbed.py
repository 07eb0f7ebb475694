"""Crux's testbed mixes beside the paper: ``python benchmarks/testbed.py [MIX ...] [--seeds 10] [--policy P] [--json]``.

Every mix runs on the emulator with several hash seeds, under ``ecmp`` and the policy. Printed are GPU utilisation (mean
over the seeds and standard deviation), the ideal, and the share of the gap between them that the policy closes; and the
change of each model's mean iteration time, the price that some pay. The paper's figures are those read off its figures
19 to 22 (utilisation) and printed there (completion times). Where GPT is in a mix and does not become faster, the exit
status is 1.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import provenance
from controller.policy.policy_name import PolicyName
from controller.run.emulated import run_on_emulator
from controller.run.results import RunResult
from workloads.loading import SHIPPED_SCENARIOS, load_scenario


@dataclass(frozen=True, slots=True)
class Published:
    """Utilisation without Crux, with it, and ideal; change of completion time by model, in parts of one."""

    without: float
    scheduled: float
    ideal: float
    changes: dict[str, float]

    @property
    def gap_closed(self) -> float:
        return (self.scheduled - self.without) / (self.ideal - self.without)


PAPER = {
    "fig19-n2": Published(0.759, 0.842, 0.850, {"gpt": -0.11, "bert": 0.03}),
    "fig19-n3": Published(0.673, 0.788, 0.810, {"gpt": -0.17, "bert": 0.00}),
    "fig19-n4": Published(0.597, 0.736, 0.770, {"gpt": -0.25, "bert": 0.01}),
    "fig20": Published(0.655, 0.785, 0.820, {"gpt": -0.18, "bert": -0.15, "resnet": 0.02}),
    "fig21": Published(0.697, 0.793, 0.820, {"bert": -0.19, "resnet": 0.02}),
    "fig22": Published(0.540, 0.687, 0.720, {"bert": -0.28, "resnet": 0.02}),
}


def measure(mix: str, seeds: int, policy: PolicyName) -> dict[str, object]:
    """One mix under ``ecmp`` and a policy, over the seeds from 1 on."""
    scenario = load_scenario(SHIPPED_SCENARIOS / f"{mix}.yaml")
    results: defaultdict[PolicyName, list[RunResult]] = defaultdict(list)
    for seed in range(1, seeds + 1):
        seeded = scenario.model_copy(update={"seed": seed})
        for name in (PolicyName.ECMP, policy):
            results[name].append(asyncio.run(run_on_emulator(seeded, name, on_progress=lambda *_: None)))
            print(f"{mix} seed {seed} {name}: {results[name][-1].gpu_utilisation:.4f}", file=sys.stderr)
    without, scheduled = _utilisations(results[PolicyName.ECMP]), _utilisations(results[policy])
    ideal = statistics.mean(result.ideal_gpu_utilisation for result in results[policy])
    before, after = _iteration_times(results[PolicyName.ECMP]), _iteration_times(results[policy])
    return {
        "mix": mix,
        "policy": policy,
        "ecmp": statistics.mean(without),
        "ecmp_deviation": statistics.stdev(without) if seeds > 1 else 0.0,
        "scheduled": statistics.mean(scheduled),
        "scheduled_deviation": statistics.stdev(scheduled) if seeds > 1 else 0.0,
        "ideal": ideal,
        "gap_closed": (statistics.mean(scheduled) - statistics.mean(without)) / (ideal - statistics.mean(without)),
        "changes": {model: after[model] / before[model] - 1 for model in before},
        "paper": {**asdict(PAPER[mix]), "gap_closed": PAPER[mix].gap_closed},
        "seeds": [{"ecmp": one, "scheduled": other} for one, other in zip(without, scheduled, strict=True)],
    }


def _utilisations(results: list[RunResult]) -> list[float]:
    return [result.gpu_utilisation for result in results]


def _iteration_times(results: list[RunResult]) -> dict[str, float]:
    """Mean iteration time by model, the name of a job up to its dash."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        for job in result.jobs:
            if job.iteration_time_s is not None:
                times[job.name.partition("-")[0]].append(job.iteration_time_s)
    return {model: statistics.mean(values) for model, values in times.items()}


def show(measured: dict[str, object]) -> str:
    """A mix beside the paper, in two lines."""
    paper = PAPER[str(measured["mix"])]
    changes = _changes_of(measured)
    lines = [
        f"{measured['mix']:9} ours  ecmp {measured['ecmp']:.3f} (sd {measured['ecmp_deviation']:.3f})"
        f"  {measured['policy']} {measured['scheduled']:.3f} (sd {measured['scheduled_deviation']:.3f})"
        f"  ideal {measured['ideal']:.3f}  gap closed {measured['gap_closed']:.2f}  iterations {_changes(changes)}",
        f"{'':9} paper ecmp {paper.without:.3f}             crux {paper.scheduled:.3f}            "
        f"  ideal {paper.ideal:.3f}  gap closed {paper.gap_closed:.2f}  iterations {_changes(paper.changes)}",
    ]
    return "\n".join(lines)


def _changes_of(measured: dict[str, object]) -> dict[str, float]:
    changes = measured["changes"]
    assert isinstance(changes, dict)
    return changes


def _changes(changes: dict[str, float]) -> str:
    return ", ".join(f"{model} {change:+.0%}" for model, change in changes.items())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mixes", nargs="*", metavar="MIX", help=f"of {', '.join(PAPER)}; without any: all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--policy", type=PolicyName, default=PolicyName.CRUX)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.mixes) - PAPER.keys():
        parser.error(f"expected mixes of {', '.join(PAPER)}, not {', '.join(sorted(unknown))}")
    measured = [measure(mix, arguments.seeds, arguments.policy) for mix in arguments.mixes or PAPER]
    if arguments.json:
        print(json.dumps({**provenance(("numpy", "numba")), "mixes": measured}))
    else:
        print(*map(show, measured), sep="\n")
    if any(_changes_of(mix).get("gpt", -1.0) >= 0 for mix in measured):
        sys.exit("GPT did not become faster in each mix")


if __name__ == "__main__":
    main()
