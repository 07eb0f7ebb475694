"""One drawn mix under several policies, its jobs alone, and its best plans: for ``mixes.py`` and ``best_plans.py``."""

import importlib.util
import statistics
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks.plan_search import PlanSearch, policy_of
from experiments.scenarios.modelled import ModelledScenario
from experiments.scenarios.simulated import run_on_simulator
from policies.registry import find_policy, policy_names
from workloads.measures import Window
from workloads.scenario import Scenario

DRAWING = Path(__file__).resolve().parents[2] / "shared/data/policy-cases/draw.py"
BEST_PLANS = Path(__file__).with_name("best_plans.json")
BASELINES = ("ecmp", "crux")
RUN_SEEDS = (1, 2, 3)
_ALONE_ITERATIONS = 4
_STEADY = 1e-9
"""Iteration times that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one mix: by run seed, the GPU utilisation, the starved jobs and the least speed of a job."""

    utilisations: tuple[float, ...]
    starved_jobs: tuple[int, ...]
    worst_speeds: tuple[float, ...]

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
        """The better of the baselines that starve nobody; of all, where every one starves a job."""
        measured = [self.by_policy[policy] for policy in BASELINES]
        fair = [each for each in measured if not any(each.starved_jobs)]
        return max(fair or measured, key=lambda each: each.utilisation)


def measure(drawing: Path, policy: str, seed: int) -> Mix:
    """Measure one mix."""
    drawn = _loaded(drawing)
    by_policy = {}
    for name in (*BASELINES, policy):
        results = [
            run_on_simulator(Scenario.model_validate(drawn.mix(seed, run_seed)), name, on_progress=lambda *_: None)
            for run_seed in RUN_SEEDS
        ]
        by_policy[name] = Measured(
            tuple(result.gpu_utilisation for result in results),
            tuple(result.starved_jobs for result in results),
            tuple(result.worst_speed or 0.0 for result in results),
        )
    return Mix(seed, by_policy, *_alone(drawn, seed))


def best_known(drawing: Path, num_plans: int, seed: int) -> dict[int, float]:
    """Return by run seed the best GPU utilisation that is known of a mix: of a search, or of a shipped policy."""
    drawn = _loaded(drawing)
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


def _loaded(drawing: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("drawing", drawing)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
