"""Simulator and emulator agree on iteration times within 5 %; ``benchmarks/agreement.py`` has more scenarios."""

import asyncio

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.simulated import run_on_simulator
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import ProfileError


def test_both_back_ends_register_the_same_jobs_and_levels() -> None:
    told = {"num_levels": 2, "profile_error": ProfileError(work=0.5, bytes=0.2)}
    scenario = load_scenario(SHIPPED_SCENARIOS / "crux-example-1.yaml").model_copy(update=told)
    emulated = asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))
    simulated = run_on_simulator(scenario, "crux", on_progress=lambda *_: None)
    assert {job.level for job in emulated.jobs} == {0, 1}
    assert [job.level for job in simulated.jobs] == [job.level for job in emulated.jobs]
    for job, other in zip(simulated.jobs, emulated.jobs, strict=True):
        assert job.intensity == pytest.approx(other.intensity, rel=1e-9)


@pytest.mark.parametrize("name", ["crux-example-1", "pipeline"])
@pytest.mark.parametrize("policy", ["ecmp", "crux"])
def test_iteration_times_agree(policy: str, name: str) -> None:
    scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml").model_copy(update={"compute_jitter": 0.02})
    emulated = asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda *_: None))
    simulated = run_on_simulator(scenario, policy, on_progress=lambda *_: None)
    for job, other in zip(simulated.jobs, emulated.jobs, strict=True):
        assert job.iteration_time_s == pytest.approx(other.iteration_time_s, rel=0.05)
    assert simulated.gpu_utilisation == pytest.approx(emulated.gpu_utilisation, rel=0.05)
    assert (simulated.num_rules, simulated.fluid_bound_gpu_utilisation) == pytest.approx(
        (emulated.num_rules, emulated.fluid_bound_gpu_utilisation), rel=0.05
    )
