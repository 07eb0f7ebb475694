"""Three stand-in jobs on a Clos that leaves hosts two paths: in network namespaces, and on the emulator."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from workloads.loading import SHIPPED_SCENARIOS

SCENARIO = SHIPPED_SCENARIOS / "three-jobs.yaml"
HASHED, PLANNED = "ecmp", "crux"
RUNS = 3

Figures = dict[str, object]
Times = dict[tuple[str, str], float | None]
"""Iteration times by policy and job, None where a job has completed no iteration."""


def job_figures(*, is_real_time: bool) -> Figures:
    """Run the jobs under both policies, and compare utilisation and iteration times."""
    options = ["--on", "namespaces", *(["--real-time"] if is_real_time else [])]
    emulated = _run("--on", "emulator")
    runs = [_run(*options) for _ in range(RUNS)]
    gains = [100 * (run[PLANNED]["gpu_utilisation"] - run[HASHED]["gpu_utilisation"]) for run in runs]
    levels = {job["name"]: job["level"] for job in emulated[PLANNED]["jobs"]}
    starved = min(levels, key=lambda name: levels[name])
    expected, measured = _times(emulated), [_times(run) for run in runs]
    found = {key: _median([times[key] for times in measured]) for key in expected}
    errors = {key: _error(found[key], expected[key]) for key in expected}
    return {
        "clos_gain_points": round(statistics.median(gains), 1),
        "iteration_time_error": max(error for key, error in errors.items() if key != (PLANNED, starved)),
        "starved_iteration_time_error": errors[PLANNED, starved],
        "clos_gain_points_runs": [round(gain, 1) for gain in gains],
        "clos_gain_points_on_emulator": round(
            100 * (emulated[PLANNED]["gpu_utilisation"] - emulated[HASHED]["gpu_utilisation"]), 1
        ),
        "iteration_time_errors": {f"{job} under {policy}": error for (policy, job), error in errors.items()},
        "iteration_times_s_on_emulator": _by_name(expected),
        "iteration_times_s_runs": [_by_name(times) for times in measured],
    }


def _run(*options: str) -> Mapping[str, Any]:
    """Return what ``trainyard run --json`` prints, by policy. Raises RuntimeError with its complaint where it fails."""
    policies = ("--policy", HASHED, "--policy", PLANNED)
    command = (sys.executable, "-P", "-m", "trainyard", "run", str(SCENARIO), *policies, *options, "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(options)}: {done.stderr.strip()[-500:]}")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {result["policy"]: result for result in results}


def _times(run: Mapping[str, Any]) -> Times:
    return {(policy, job["name"]): job["iteration_time_s"] for policy, result in run.items() for job in result["jobs"]}


def _by_name(times: Times) -> dict[str, float | None]:
    return {f"{job} under {policy}": time_s and round(time_s, 4) for (policy, job), time_s in times.items()}


def _median(times_s: list[float | None]) -> float | None:
    """Return the median, where a job without an iteration has taken longest."""
    found = statistics.median(float("inf") if time_s is None else time_s for time_s in times_s)
    return None if found == float("inf") else found


def _error(measured_s: float | None, expected_s: float | None) -> float:
    if measured_s is None or expected_s is None:
        return 0.0 if measured_s == expected_s else 1.0
    return round(abs(measured_s / expected_s - 1), 4)
