"""Published training runs: the papers' formulas, and the tables against the numbers that they should reach."""

import pytest

from benchmarks.published_runs import PredictedRun, PublishedTable
from benchmarks.published_tables import LLAMA, MEGASCALE, MEGASCALE_BASELINE, MEGATRON, RECOMPUTATION, TABLES


def test_iteration_times_are_those_of_megatrons_paper() -> None:
    """Section 5.1: 3,072 GPUs at 163 TFLOP/s train 450e9 tokens in 84 days."""
    trillion = MEGATRON.runs[-1]
    days = trillion.published_s * 450e9 / (trillion.workload["batch"] * 2048) / 86_400
    assert days == pytest.approx(84, rel=0.02)


def test_llamas_rows_have_sixteen_million_tokens() -> None:
    assert {run.workload["batch"] * run.workload["model"].tokens for run in LLAMA.runs} == {16 * 2**20}


def test_megascales_runs_have_the_tokens_a_second_that_the_paper_prints() -> None:
    """Table 2: 1,984.0e3 tokens a second on 12,288 GPUs, and 39.3e3 of Megatron-LM on 256."""
    for table, place, tokens_per_s in ((MEGASCALE, -1, 1984.0e3), (MEGASCALE_BASELINE, 0, 39.3e3)):
        run = table.runs[place]
        assert run.workload["batch"] * 2048 / run.published_s == pytest.approx(tokens_per_s, rel=2e-3)


def test_full_recomputation_has_the_hardware_flops_that_its_paper_prints() -> None:
    """Table 5: 175 B reaches 51.4 % of 312 TFLOP/s in 13.75 s (appendix A: 72 b l s h^2 (1 + s/6h + V/12hl))."""
    run = next(run for run in RECOMPUTATION.runs if run.name == "175 B selective")
    flops = 72 * 64 * 96 * 2048 * 12288**2 * (1 + 2048 / (6 * 12288) + 51200 / (12 * 12288 * 96))
    assert flops / (run.published_s * run.num_gpus * 312e12) == pytest.approx(0.514, abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_are_predicted_from_one_row(table: PublishedTable) -> None:
    fitted = next(row for row in table.rows if row.name == table.fitted)
    assert fitted.error == pytest.approx(0, abs=1e-6)
    assert table.median_error <= 0.1
    assert table.worst_error <= 0.2


def test_errors_leave_out_the_fitted_row() -> None:
    table = PublishedTable("t", "s", {}, 1.0, "f", (), ())
    predicted = (("f", 9.0), ("a", 0.8), ("b", 1.1), ("c", 1.0))
    table.__dict__["rows"] = tuple(PredictedRun(name, 1.0, seconds) for name, seconds in predicted)
    assert table.median_error == pytest.approx(0.1)
    assert table.worst_error == pytest.approx(0.2)
