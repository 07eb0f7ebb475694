"""No run exceeds the ideal of its jobs, or the fluid bound by more than the iterations that its window cuts."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.scenarios.backend import Backend, run_on
from experiments.scenarios.results import RunResult
from policies.enforcement import Enforcement
from workloads.scenario import Scenario

_ROUNDING = 1e-6
_EMULATOR_ROUNDING = 0.004
"""A link whose other direction is idle carries no acknowledgements: docs/measures.md."""


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    """One to three jobs on two to four hosts, between which paths of other lengths and rates lead."""
    num_paths = draw(st.integers(1, 3))
    middles = [f"a{number}" for number in range(num_paths)]
    per_side = draw(st.integers(1, 2))
    sides = [[f"h{number}" for number in range(first, first + per_side)] for first in (0, per_side)]
    links: list[dict[str, Any]] = [{"ends": [host, "t0"], "gbps": 400} for host in sides[0]]
    links += [{"ends": [host, "t1"], "gbps": 400} for host in sides[1]]
    for middle in middles:
        gbps = draw(st.sampled_from([50, 100, 400]))
        links += [{"ends": ["t0", middle], "gbps": gbps}, {"ends": [middle, "t1"], "gbps": gbps}]
    jobs = []
    for number in range(draw(st.integers(1, 3))):
        compute_s = draw(st.sampled_from([0.1, 0.25, 0.6]))
        rings = draw(st.booleans())
        hosts = [draw(st.sampled_from(sides[0])), draw(st.sampled_from(sides[1]))]
        workload: dict[str, Any] = {
            **{"type": "phases", "compute_s": compute_s, "comm_start": draw(st.sampled_from([0.0, 0.4, 1.0]))},
            **{"bytes": draw(st.integers(1, 8)) * 1e9, "pattern": "ring" if rings else "pairs"},
        }
        if draw(st.booleans()):
            workload = {"type": "fsdp", "model": "bert", "layer_groups": draw(st.sampled_from([2, 4]))}
        jobs.append({"name": f"j{number}", "hosts": hosts, "gpus_per_host": 2, "duration_s": 5.0, "workload": workload})
    from_s = draw(st.floats(0.0, 2.0))
    return {
        "name": "drawn",
        "topology": {
            **{"kind": "graph", "gpus_per_host": 8, "hosts": [*sides[0], *sides[1]]},
            **{"switches": ["t0", "t1", *middles], "links": links},
        },
        "jobs": jobs,
        "measure": {"from_s": from_s, "to_s": from_s + draw(st.floats(0.5, 3.0))},
    }


def _check(result: RunResult, rounding: float) -> None:
    length_s = result.window_to_s - result.window_from_s
    longest_s = max(job.ideal_iteration_time_s / job.speed if job.speed else length_s for job in result.jobs)
    # All that counts was sent within the window and the iterations that it cuts.
    reach = 1 + 2 * longest_s / length_s
    assert result.gpu_utilisation <= result.ideal_gpu_utilisation * (1 + rounding)
    assert result.gpu_utilisation <= result.fluid_bound_gpu_utilisation * reach * (1 + rounding)
    for job in result.jobs:
        assert job.speed is None or job.speed <= 1 + rounding, job.name


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ecmp", "crux", "trainyard", "echelonflow"])
@given(document=mixes())
@settings(max_examples=25, deadline=None)
def test_no_run_on_the_simulator_exceeds_them(policy: str, document: dict[str, Any]) -> None:
    scenario = Scenario.model_validate(document)
    for enforcement in Enforcement:
        _check(run_on(Backend.SIMULATOR, scenario, policy, enforcement, on_progress=lambda *_: None), _ROUNDING)


@pytest.mark.slow
@given(document=mixes())
@settings(max_examples=4, deadline=None)
def test_no_run_on_the_emulator_exceeds_them(document: dict[str, Any]) -> None:
    result = run_on(
        Backend.EMULATOR, Scenario.model_validate(document), "crux", Enforcement.LEVELS, on_progress=lambda *_: None
    )
    _check(result, _EMULATOR_ROUNDING)
