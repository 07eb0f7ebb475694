from dataclasses import replace

import pytest

from experiments.papers.crux_testbed import POLICIES, PUBLISHED, CruxTestbed, MixCase, MixMeasured
from experiments.scenarios.backend import Backend
from experiments.scenarios.results import RunResult
from tests.experiments.report.builders import make_job, make_result
from workloads.loading import SHIPPED_SCENARIOS


def a_run(policy: str, seed: int, utilisation: float, times_s: dict[str, float | None]) -> RunResult:
    jobs = tuple(make_job(name, iteration_time_s=time_s) for name, time_s in times_s.items())
    made = make_result(policy, utilisation, jobs, scenario="fig20")
    limits = {"ideal_gpu_utilisation": 0.9, "fluid_bound_gpu_utilisation": 0.8}
    return replace(made, backend="simulator", seed=seed, **limits)


@pytest.fixture
def mix() -> MixMeasured:
    """Two seeds: 0.5 and 0.6 without scheduling, 0.7 and 0.8 under Crux, 0.8 under ours."""
    slow, fast = {"gpt": 2.0, "bert-1": 1.0, "bert-2": 3.0}, {"gpt": 1.5, "bert-1": 2.0, "bert-2": None}
    times_s = (slow, fast, fast)
    results = {
        MixCase("fig20", seed, Backend.SIMULATOR): tuple(
            a_run(*of) for of in zip(POLICIES, (seed,) * 3, utilisations, times_s, strict=True)
        )
        for seed, utilisations in ((1, (0.5, 0.7, 0.8)), (2, (0.6, 0.8, 0.8)))
    }
    return CruxTestbed().combine(list(results), results)


def test_means_and_shares_follow_from_the_runs(mix: MixMeasured) -> None:
    ecmp, crux, ours = mix.policies
    assert (mix.seeds, mix.backend) == ((1, 2), "simulator")
    assert (ecmp.utilisation, ecmp.deviation) == pytest.approx((0.55, 0.005**0.5))
    assert ecmp.gap_closed == pytest.approx(0.0)
    assert crux.gap_closed == pytest.approx((0.75 - 0.55) / (0.9 - 0.55))
    assert crux.limit == 0.8
    assert (crux.share_of_limit, ours.share_of_limit) == pytest.approx((0.75 / 0.8, 1.0))


def test_changes_are_by_model_over_the_jobs_that_have_a_time(mix: MixMeasured) -> None:
    assert mix.policies[0].changes == {"gpt": 0.0, "bert": 0.0}
    assert mix.policies[1].changes == pytest.approx({"gpt": -0.25, "bert": 0.0})


def test_one_seed_has_no_deviation_and_an_empty_gap_no_share() -> None:
    case = MixCase("fig21", 1, Backend.SIMULATOR)
    one = CruxTestbed().combine([case], {case: tuple(a_run(policy, 1, 0.9, {"bert": 1.0}) for policy in POLICIES)})
    assert [(of.deviation, of.gap_closed) for of in one.policies] == [(0.0, None)] * 3


def test_every_published_mix_is_shipped_and_the_paper_is_beside_it() -> None:
    assert all((SHIPPED_SCENARIOS / f"{mix}.yaml").exists() for mix in PUBLISHED)
    assert PUBLISHED["fig19-n4"].gap_closed == pytest.approx(0.803, abs=0.001)


def _plain(cells: tuple[str, ...]) -> str:
    return "|".join(cells).replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "-")


def test_tables_have_the_paper_beside_ours(mix: MixMeasured) -> None:
    found = CruxTestbed().findings([mix])
    utilisation, limits, changes = ([_plain(row) for row in table.rows] for table in found.tables)
    assert utilisation[1] == "fig20|crux|75.0 %|7.1|78.5 %|90.0 %|82.0 %|2.50|0"
    assert utilisation[2] == "fig20|trainyard|80.0 %|0.0|-|90.0 %|82.0 %|2.50|0"
    assert limits[0] == "fig20|crux|2|80.0 %|93.8 %|57.1 %|78.8 %"
    assert changes[0] == "fig20|gpt|-25.0 %|-25.0 %|-18.0 %"
    assert "seeds 1 to 2" in found.title
    assert any("fluid flows" in words for words in found.assumptions)


def test_json_names_seeds_assumptions_and_the_paper(mix: MixMeasured) -> None:
    found = CruxTestbed().json_object(mix)
    assert found["seeds"] == (1, 2)
    assert found["assumptions"]
    published = found["published"]
    assert isinstance(published, dict)
    assert published["crux_gpu_utilisation"] == 0.785
