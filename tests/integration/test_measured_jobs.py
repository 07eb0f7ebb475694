"""A job registers only its hosts, and the run measures it by switch counters, beside a job that reports everything."""

import asyncio

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import JobResult
from workloads.scenario import ProfileSource, Scenario

_PHASES = {"type": "phases", "comm_start": 0.4, "pattern": "ring"}
_SCENARIO = {
    "name": "quiet and loud",
    "topology": {"kind": "clos", "tors": 2, "aggs": 1, "hosts_per_tor": 2, "host_link_gbps": 100, "uplink_gbps": 100},
    "compute_jitter": 0.05,
    "jobs": [
        {
            "name": "quiet",
            "hosts": ["h0", "h2"],
            "gpus_per_host": 8,
            "duration_s": 7.0,
            "profile": "measured",
            "workload": _PHASES | {"compute_s": 0.2, "bytes": 1.25e9},
        },
        {
            "name": "loud",
            "hosts": ["h1", "h3"],
            "gpus_per_host": 8,
            "duration_s": 7.0,
            "workload": _PHASES | {"compute_s": 0.3, "bytes": 1.5e9},
        },
    ],
}


def _jobs(scenario: Scenario) -> dict[str, JobResult]:
    result = asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))
    return {job.name: job for job in result.jobs}


def test_a_measured_job_has_the_intensity_of_a_reported_one() -> None:
    jobs = _jobs(Scenario.model_validate(_SCENARIO))
    # W = 16 GPUs for an iteration of 0.2 s, t = 0.1 s on every link of its way.
    assert jobs["quiet"].intensity == pytest.approx(16 * 0.2 / 0.1, rel=0.05)
    assert jobs["loud"].intensity == pytest.approx(16 * 0.3 / 0.12, rel=0.01)
    assert (jobs["quiet"].profile, jobs["loud"].profile) == (ProfileSource.MEASURED, ProfileSource.REPORTED)
