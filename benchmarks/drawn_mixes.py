"""One drawn mix under several policies, its jobs alone, and its best plans: for ``mixes.py`` and ``best_plans.py``."""

import argparse
import importlib.util
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from benchmarks.plan_search import PlanSearch, policy_of
from experiments.scenarios.modelled import ModelledScenario
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from experiments.sweeps.processes import Failure, num_cores, on_processes
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Snapshot
from workloads.measures import Window
from workloads.scenario import Scenario

DRAWING = Path(__file__).resolve().parents[2] / "shared/data/policy-cases/draw.py"
BEST_PLANS = Path(__file__).with_name("best_plans.json")
BASELINES = ("ecmp", "crux")
RUN_SEEDS = (1, 2, 3)
_ALONE_ITERATIONS = 4
_STEADY = 1e-9
"""Iteration times that differ by less are equal."""
_WELL_PREDICTED = 0.05

_MeasuredT = TypeVar("_MeasuredT")


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one mix: by run seed, the GPU utilisation, the starved jobs and the least speed of a job.

    ``well_predicted`` tells of every job of every run whether its iterations took as long as the policy said, to 5 %;
    nothing where the policy said nothing.
    """

    utilisations: tuple[float, ...]
    starved_jobs: tuple[int, ...]
    worst_speeds: tuple[float, ...]
    well_predicted: tuple[bool, ...]

    @classmethod
    def of(cls, results: Sequence[RunResult], well_predicted: Iterable[bool] = ()) -> "Measured":
        """Return what results, one of each run seed, tell."""
        return cls(
            tuple(result.gpu_utilisation for result in results),
            tuple(result.starved_jobs for result in results),
            tuple(result.worst_speed or 0.0 for result in results),
            tuple(well_predicted),
        )

    @property
    def utilisation(self) -> float:
        """The mean over the run seeds."""
        return statistics.mean(self.utilisations)


@dataclass(frozen=True, slots=True)
class Mix:
    """What was measured on a mix: by policy; and of its jobs alone, the worst slowdown against ecmp, and whose."""

    seed: int
    by_policy: dict[str, Measured]
    alone_slowdown: float
    alone_worst: str

    @property
    def baseline(self) -> Measured:
        """What gains are counted from."""
        return better_baseline(self.by_policy)


def better_baseline(by_policy: Mapping[str, Measured]) -> Measured:
    """Return the better of the baselines that starve nobody; of all, where every one starves a job."""
    measured = [by_policy[policy] for policy in BASELINES]
    fair = [each for each in measured if not any(each.starved_jobs)]
    return max(fair or measured, key=lambda each: each.utilisation)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what draws mixes, and how they are measured and printed."""
    parser.add_argument("--drawing", type=Path, default=DRAWING, help="the program that draws (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=num_cores(), help="processes (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def require_drawing(drawing: Path) -> None:
    """End the program with 2, saying why, where the program that draws mixes is not there."""
    if not drawing.is_file():
        print(f"{drawing}: there is no such drawing of mixes; name one with --drawing", file=sys.stderr)
        sys.exit(2)


def measure_all(
    what: str,
    measured: Callable[[int], _MeasuredT],
    numbers: Iterable[int],
    workers: int,
    words: Callable[[_MeasuredT], str],
) -> dict[int, _MeasuredT]:
    """Measure cases on processes, and say on stderr what came of each; end the program with 1 where one fails.

    Args:
        what: What a case is called: ``mix``.
        measured: Measures the case of a number.
        numbers: The numbers.
        workers: How many processes there are.
        words: What is said of a case.
    """
    found: dict[int, _MeasuredT] = {}
    for number, each in on_processes(measured, list(numbers), workers):
        if isinstance(each, Failure):
            sys.exit(f"{what} {number}: {each.reason}")
        print(f"{what} {number}: {words(each)}", file=sys.stderr, flush=True)
        found[number] = each
    return found


def measure(drawing: Path, policy: str, seed: int) -> Mix:
    """Measure one mix."""
    drawn = loaded(drawing)
    by_policy = {}
    for name in (*BASELINES, policy):
        runs = [
            run_recording_plan(Scenario.model_validate(drawn.mix(seed, run_seed)), find_policy(name))
            for run_seed in RUN_SEEDS
        ]
        by_policy[name] = Measured.of(
            [result for result, _ in runs], (is_well for run in runs for is_well in well_predicted(*run))
        )
    return Mix(seed, by_policy, *_alone(drawn, seed))


def run_recording_plan(scenario: Scenario, policy: Policy) -> tuple[RunResult, Plan | None]:
    """Run a scenario; return the result, and the first Plan of the policy for all jobs, None where there is none."""
    plans: list[Plan] = []

    def recording(snapshot: Snapshot) -> Plan:
        plan = decide(policy, snapshot)
        if not plans and len(snapshot.jobs) == len(scenario.jobs):
            plans.append(plan)
        return plan

    result = run_on_simulator(scenario, replace(policy, decide=recording), on_progress=lambda *_: None)
    return result, plans[0] if plans else None


def well_predicted(result: RunResult, plan: Plan | None) -> list[bool]:
    """Return by job whether its iterations took as long as a Plan said; nothing where the Plan said nothing."""
    predicted_s = {} if plan is None or plan.worth is None else plan.worth.iteration_s
    if not predicted_s:
        return []
    measured_s = {job.name: job.iteration_time_s for job in result.jobs}
    return [
        time_s is not None and name in predicted_s and abs(predicted_s[name] - time_s) <= _WELL_PREDICTED * time_s
        for name, time_s in measured_s.items()
    ]


def best_known(drawing: Path, num_plans: int, seed: int) -> dict[int, float]:
    """Return by run seed the best GPU utilisation that is known of a mix: of a search, or of a shipped policy."""
    drawn = loaded(drawing)
    best = {}
    for run_seed in RUN_SEEDS:
        scenario = Scenario.model_validate(drawn.mix(seed, run_seed))
        assert scenario.measure is not None
        window = Window(scenario.measure.from_s, scenario.measure.to_s)
        plan = PlanSearch(ModelledScenario.of(scenario), window, run_seed).best(num_plans)
        policies = policy_of(plan), *map(find_policy, policy_names())
        runs = [run_on_simulator(scenario, policy, on_progress=lambda *_: None) for policy in policies]
        best[run_seed] = max(run.gpu_utilisation for run in runs if not run.starved_jobs or run is runs[0])
    return best


def _alone(drawn: ModuleType, seed: int) -> tuple[float, str]:
    """Return the worst slowdown of a job alone under any policy against ecmp, and the job and the policy."""
    document = drawn.mix(seed) | {"compute_jitter": 0}
    del document["measure"]
    worst = -1.0, ""
    for job in document["jobs"]:
        one = {key: value for key, value in job.items() if key != "duration_s"} | {"iterations": _ALONE_ITERATIONS}
        scenario = Scenario.model_validate(document | {"jobs": [one]})
        times_s = {}
        for policy in policy_names():
            (result,) = run_on_simulator(scenario, policy, on_progress=lambda *_: None).jobs
            assert result.iteration_time_s is not None
            times_s[policy] = result.iteration_time_s
        for policy, time_s in times_s.items():
            slowdown = time_s / times_s["ecmp"] - 1
            worst = max(worst, (slowdown if abs(slowdown) > _STEADY else 0.0, f"{seed} {job['name']} {policy}"))
    return worst


def loaded(drawing: Path) -> ModuleType:
    """Return the program that draws mixes."""
    specification = importlib.util.spec_from_file_location("drawing", drawing)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
