import statistics

from hypothesis import given
from hypothesis import strategies as st

from experiments.sweeps.cases import Case
from experiments.sweeps.summary import Spread, summarise
from tests.experiments.sweeps.builders import asked, document, failed, finished
from workloads.scenario import Scenario

SCENARIO = Scenario.model_validate(document())


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_a_spread_agrees_with_the_standard_library(values: list[float]) -> None:
    spread = Spread.of(values)
    quantiles = statistics.quantiles(values, n=20, method="inclusive")
    expected = (
        statistics.mean(values),
        statistics.stdev(values),
        quantiles[0],
        statistics.median(values),
        quantiles[-1],
    )
    found = (spread.mean, spread.deviation, spread.p5, spread.p50, spread.p95)
    assert all(abs(one - other) < 1e-9 for one, other in zip(found, expected, strict=True))


def test_one_value_has_no_deviation() -> None:
    assert Spread.of([0.5]) == Spread(0.5, 0.0, 0.5, 0.5, 0.5)


def test_cells_summarise_the_finished_seeds_of_a_scenario_setting_and_policy() -> None:
    grid = [
        asked(policy=policy, seed=seed, settings={"scale": scale})
        for seed in (1, 2, 3)
        for scale in (1, 2)
        for policy in ("ecmp", "crux")
    ]
    ecmp_1, crux_1, ecmp_2, crux_2 = range(4)
    lines = [
        finished(grid[ecmp_1], 0.2),
        finished(grid[4 + ecmp_1], 0.4),
        failed(grid[8 + ecmp_1]),
        failed(grid[crux_2]),
    ]
    others = [finished(asked(seed=7, settings={"scale": 1}), 0.9)]
    found = summarise([Case(each, SCENARIO) for each in grid], {line.key: line for line in lines + others})
    assert [(cell.settings["scale"], cell.policy) for cell in found] == [
        (1, "ecmp"),
        (1, "crux"),
        (2, "ecmp"),
        (2, "crux"),
    ]
    assert [(cell.finished, cell.failed) for cell in found] == [(2, 1), (0, 0), (0, 0), (0, 1)]
    spread = found[ecmp_1].gpu_utilisation
    assert spread is not None
    assert (round(spread.mean, 9), round(spread.p95, 9), found[ecmp_1].limit) == (0.3, 0.39, 0.8)
    assert (found[ecmp_1].starved_jobs, found[ecmp_1].worst_speed, found[crux_1].worst_speed) == (2, 0.25, None)
    assert found[crux_2].gpu_utilisation is found[ecmp_2].gpu_utilisation is found[crux_1].limit is None
