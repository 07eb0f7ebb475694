import json

import pytest

from experiments.papers.crux_microbench import PUBLISHED, CruxMicrobenchmark
from experiments.papers.microbench.cases import Assumption
from experiments.papers.microbench.mechanisms import METHODS, CaseMeasured, Mechanism, Reached
from experiments.report.findings import DistributionChart
from experiments.report.page import findings_report


def a_case(seed: int, load: float, of_crux: float) -> CaseMeasured:
    """The best is 0.8, the worst 0.4; Crux gets as much as said, the others 0.6."""
    reached = tuple(
        Reached(mechanism, policy, of_crux if policy == "crux" else 0.6)
        for mechanism, policies in METHODS.items()
        for policy in policies
    )
    return CaseMeasured(seed, load, 0.8, dict.fromkeys(Mechanism, 0.4), reached)


CASES = [a_case(1, 0.4, 0.8), a_case(2, 1.0, 0.6), a_case(3, 2.0, 0.4)]


def rows_of(table: int) -> dict[str, str]:
    rows = CruxMicrobenchmark().findings(CASES).tables[table].rows
    return {row[0]: "|".join(row[1:]).replace("\N{NO-BREAK SPACE}", " ").replace("\N{EN DASH}", "-") for row in rows}


def test_findings_have_both_readings_beside_the_papers_figures() -> None:
    shares, errors = rows_of(0), rows_of(1)
    assert shares["paths, crux"] == "87.50 %|97.69 %|77.5 %|75.0 %|50.0 %"
    assert shares["paths, trainyard"] == "75.00 %|-|75.0 %|75.0 %|0.0 %"
    assert errors["priorities, crux"] == "25.0 %|2.8 %|25.0, 45.0, 50.0|0.5, 9.2, 45.6"
    assert errors["priorities, varys"] == "50.0 %|57.8 %|50.0, 50.0, 50.0|60.0, 85.7, 100.0"


def test_loads_have_separate_rows_and_empty_ones_are_left_out() -> None:
    assert CruxMicrobenchmark().findings(CASES).tables[2].columns == (
        "Mechanism",
        "0.3 to 0.6",
        "0.9 to 1.2",
        "1.8 to 2.5",
    )
    assert rows_of(2)["compression, crux"] == "100.0 %|75.0 %|50.0 %"
    assert rows_of(3)["compression, crux"] == "0.0 %|50.0 %|100.0 %"


def test_errors_are_zero_where_all_settings_are_equal() -> None:
    reached = Reached(Mechanism.PATHS, "crux", 0.5)
    case = CaseMeasured(1, 0.4, 0.5, {Mechanism.PATHS: 0.5}, (reached,))
    assert (case.of_best(reached), case.error(reached)) == (1.0, 0.0)


def test_high_loads_alone_have_tables_by_load() -> None:
    found = CruxMicrobenchmark().findings(CASES[2:])
    assert [table.title for table in found.tables] == [
        "U / U_opt by load",
        "(best - reached) / (best - worst) by load",
    ]


def test_charts_have_the_papers_quantiles() -> None:
    charts = CruxMicrobenchmark().findings(CASES).charts
    assert len(charts) == 2 * len(Mechanism)
    priorities = charts[2]
    assert isinstance(priorities, DistributionChart)
    by_label = {each.label: each for each in priorities.distributions}
    assert by_label["crux"].values == pytest.approx((0.0, 0.5))
    assert by_label["varys"].published == ((0.6, 0.5), (0.857, 0.9), (1.0, 1.0))
    assert by_label["trainyard"].published == ()
    assert findings_report(CruxMicrobenchmark().findings(CASES)).html().count("<figure>") == len(charts)


def test_the_papers_means_for_crux_are_those_of_its_text() -> None:
    means = [1 - PUBLISHED[mechanism, "crux"].mean for mechanism in Mechanism]
    assert means == pytest.approx([0.9769, 0.9724, 0.9712])


def test_json_has_a_line_per_case_and_one_of_all() -> None:
    line = json.loads(json.dumps(CruxMicrobenchmark(assume=Assumption.IN_TURN).json_object(CASES[1])))
    assert (line["seed"], line["assume"], line["load"]) == (2, "in-turn", 1.0)
    assert line["methods"][0] == {
        "mechanism": "paths",
        "policy": "crux",
        "gpu_utilisation": 0.6,
        "of_best": pytest.approx(0.75),
        "error": pytest.approx(0.5),
    }
    whole = json.loads(json.dumps(CruxMicrobenchmark(assume=Assumption.IN_TURN).summary_object(CASES)))
    assert (whole["num_cases"], whole["num_main_cases"]) == (3, 2)
    assert whole["methods"][0]["mean_of_best"] == pytest.approx(0.875)
    assert any("all send when all is computed" in words for words in whole["assumptions"])


@pytest.mark.parametrize("assumption", Assumption)
def test_every_assumption_is_listed(assumption: Assumption) -> None:
    told = CruxMicrobenchmark(assume=assumption).findings(CASES).assumptions
    assert ("Other than by default" in " ".join(told)) is (assumption is not Assumption.OURS)
