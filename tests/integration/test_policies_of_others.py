"""An unregistered Policy object runs on the simulator, with its own rates and order of flow groups."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.scenarios.backend import Backend, RunError, run_on
from experiments.scenarios.results import RunResult
from policies import Policy, PolicyError, RateControl, Tiers, find_policy
from policies.enforcement import Cadence, Enforcement
from policies.open_groups import OpenGroups
from policies.rates.max_min import max_min
from policies.rates.network import FloatArray, Network, Order
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

SCENARIO = load_scenario(SHIPPED_SCENARIOS / "fig20.yaml")
FIFO = find_policy("fifo")


def _run(policy: Policy, enforcement: Enforcement = Enforcement.IDEAL) -> RunResult:
    return run_on(Backend.SIMULATOR, SCENARIO, policy, enforcement, on_progress=lambda *_: None)


def _times_s(result: RunResult) -> dict[str, float | None]:
    return {job.name: job.iteration_time_s for job in result.jobs}


def test_an_unregistered_policy_runs_and_names_its_results() -> None:
    result = _run(Policy("mine", "as fifo", FIFO.decide), Enforcement.LEVELS)
    assert result.policy == "mine"
    assert _times_s(result) == _times_s(_run(FIFO, Enforcement.LEVELS))


def test_a_custom_rate_allocator_sets_the_rates() -> None:
    def a_tenth(network: Network, order: Order, weights: FloatArray, *_: FloatArray) -> FloatArray:
        return max_min(network, order, weights) / 10

    fast, slow = (
        replace(FIFO, name="mine", ideal_rates=control, order_groups=None)
        for control in (RateControl(), RateControl(a_tenth))
    )
    assert _run(slow).gpu_utilisation < 0.9 * _run(fast).gpu_utilisation


def test_groups_are_served_in_the_order_that_the_policy_gives_them() -> None:
    def last_first(groups: OpenGroups) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return (-groups.started_s).argsort(kind="stable")

    assert FIFO.ideal_rates.tiers is Tiers.GROUPS
    assert FIFO.ideal_rates.cadence is Cadence.GROUP_EVENT
    assert _times_s(_run(replace(FIFO, order_groups=last_first))) != _times_s(_run(FIFO))


def test_the_emulator_refuses_a_policy_that_its_controller_cannot_load() -> None:
    with pytest.raises((PolicyError, RunError), match="policy 'mine': other processes cannot load it"):
        run_on(Backend.EMULATOR, SCENARIO, Policy("mine", "as fifo", FIFO.decide), on_progress=lambda *_: None)
