"""Three PyTorch jobs on a Clos that leaves hosts two paths: under three policies with the same ranks, and alone."""

import statistics
from collections.abc import Sequence

from experiments.scenarios.backend import Backend, real_hosts, run_on
from experiments.scenarios.results import RunResult
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import Scenario

HASHED, PLANNED, OWN = "ecmp", "crux", "trainyard"
ALONE = "a"
"""The job that also runs alone; it is among the prioritised ones."""

_DURATION_S = 40
"""Longer than in the scenario: an iteration of the job with the lowest level counts for less of utilisation."""

Figures = dict[str, object]


def clos_figures(runs: int, *, is_real_time: bool) -> Figures:
    """Run the jobs so often under all policies, and compare utilisation and iteration times."""
    shipped = load_scenario(SHIPPED_SCENARIOS / "three-torch-jobs.yaml")
    jobs = tuple(job.model_copy(update={"duration_s": _DURATION_S}) for job in shipped.jobs)
    scenario = shipped.model_copy(update={"jobs": jobs})
    (job,) = (job for job in scenario.jobs if job.name == ALONE)
    alone = scenario.model_copy(update={"jobs": (job,)})
    alone_s = [_times(_real(alone, (HASHED,), is_real_time)[HASHED])[ALONE] for _ in range(runs)]
    played = [_real(scenario, (HASHED, PLANNED, OWN), is_real_time) for _ in range(runs)]
    emulated = run_on(Backend.EMULATOR, scenario, PLANNED, on_progress=_silent)
    levels = {job.name: job.level or 0 for job in emulated.jobs}
    starved = min(levels, key=lambda name: levels[name])
    expected = _times(emulated)
    found = {name: statistics.median(_times(results[PLANNED])[name] for results in played) for name in expected}
    errors = {name: round(abs(found[name] / expected[name] - 1), 4) for name in expected}
    return {
        "prioritised_slowdown": round(found[ALONE] / statistics.median(alone_s) - 1, 4),
        "clos_gain_points": _gain(played, PLANNED),
        "trainyard_gain_points": _gain(played, OWN),
        "iteration_time_error": max(error for name, error in errors.items() if name != starved),
        "starved_iteration_time_error": errors[starved],
        "gpu_utilisation_runs": [
            {policy: round(result.gpu_utilisation, 4) for policy, result in results.items()} for results in played
        ],
        "iteration_times_s_runs": [
            {
                f"{name} under {policy}": round(time_s, 4)
                for policy in results
                for name, time_s in _times(results[policy]).items()
            }
            for results in played
        ],
        "iteration_times_s_on_emulator": {name: round(time_s, 4) for name, time_s in expected.items()},
        "iteration_time_s_alone_runs": [round(time_s, 4) for time_s in alone_s],
    }


def _real(scenario: Scenario, policies: Sequence[str], is_real_time: bool) -> dict[str, RunResult]:
    with real_hosts(Backend.NAMESPACES, scenario, is_real_time=is_real_time, keeps_ranks=True) as run:
        return {policy: run(policy, on_progress=_silent) for policy in policies}


def _times(result: RunResult) -> dict[str, float]:
    """Return iteration times; a job without an iteration in the window has taken longest."""
    return {job.name: float("inf") if job.iteration_time_s is None else job.iteration_time_s for job in result.jobs}


def _gain(played: Sequence[dict[str, RunResult]], policy: str) -> float:
    """Return the median of what a policy gains, in points of utilisation."""
    gains = [100 * (results[policy].gpu_utilisation - results[HASHED].gpu_utilisation) for results in played]
    return round(statistics.median(gains), 1)


def _silent(_now_s: float, _end_s: float) -> None:
    pass
