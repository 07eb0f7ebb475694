from dataclasses import replace

import pytest

from experiments.papers.microbench.cases import Case, draw_case
from experiments.papers.microbench.measured import measure
from experiments.papers.microbench.mechanisms import METHODS, Mechanism, on_paths, paths
from experiments.papers.microbench.optimum import Optimum
from experiments.scenarios.simulated import run_on_simulator
from policies.policy import decide
from policies.registry import find_policy
from workloads.scenario import MeasureWindow

EASY = 0.6


@pytest.mark.parametrize("seed", [2, 3])
def test_a_case_scores_as_a_run_on_the_simulator(seed: int) -> None:
    """All jobs arrive at once, so that the run decides once; its eight levels are those of the Plan scored."""
    drawn = draw_case(seed, 2.5)
    jobs = tuple(job.model_copy(update={"arrival_s": 0.0}) for job in drawn.scenario.jobs)
    window = MeasureWindow(from_s=3.0, to_s=40.0)
    scenario = drawn.scenario.model_copy(update={"jobs": jobs, "measure": window})
    snapshot = replace(
        drawn.snapshot, num_levels=8, jobs=tuple(replace(job, arrival_s=0.0) for job in drawn.snapshot.jobs)
    )
    choice = paths("crux", snapshot)
    levels = {job.name: job.level for job in decide(find_policy("crux"), snapshot).jobs}
    optimum = Optimum(Case(drawn.load, scenario, on_paths(snapshot, choice)))
    scored = optimum.of_levels([levels[job.name] for job in snapshot.jobs]) / optimum.gpu_seconds
    result = run_on_simulator(scenario, "crux", on_progress=lambda _now, _end: None)
    assert scored == pytest.approx(result.gpu_utilisation, rel=1e-9)


def test_nothing_is_above_the_best_or_below_the_worst() -> None:
    case = measure(draw_case(1, EASY))
    assert [(reached.mechanism, reached.policy) for reached in case.reached] == [
        (mechanism, policy) for mechanism, policies in METHODS.items() for policy in policies
    ]
    for reached in case.reached:
        assert 0 < case.of_best(reached) <= 1
        # What trainyard makes of an order may be no compression of it.
        if (reached.mechanism, reached.policy) != (Mechanism.COMPRESSION, "trainyard"):
            assert 0 <= case.error(reached) <= 1 + 1e-9
