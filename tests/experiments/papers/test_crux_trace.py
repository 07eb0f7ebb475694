from pathlib import Path

import pytest

from experiments.papers.crux_trace import PUBLISHED, CruxTrace
from tests.experiments.papers.trace_results import made_up_case, made_up_result
from workloads.schedulers.catalogue import Scheduler

DASH = "\N{EN DASH}"


def test_findings_have_gains_by_both_readings(tmp_path: Path) -> None:
    results = {
        made_up_case("sincronia", Scheduler.RANDOM): made_up_result("sincronia", 4.5),
        made_up_case("crux", Scheduler.RANDOM): made_up_result("crux", 10.0),
        made_up_case("ecmp", Scheduler.RANDOM): made_up_result("ecmp", 10.0, end_s=None),
        made_up_case("crux", Scheduler.AFFINITY): made_up_result("crux", 10.0),
    }
    found = CruxTrace().findings(list(results.items()))
    tables = {table.title: table for table in found.tables}
    gains = tables["Gain of crux, in points, placed by random"]
    assert gains.rows == (("ecmp", "0.0", "0.0", DASH), ("sincronia", "+50.0", "+27.5", "+23.0"))
    # Alone it gains over nobody.
    assert "Gain of crux, in points, placed by affinity" not in tables
    used = tables["GPU utilisation, placed by random"]
    assert used.rows[2][:5] == ("sincronia", *(f"{number}\N{NO-BREAK SPACE}%" for number in (50.0, 39.0, 72.5, 24.3)))
    slowed = tables["Slowdown of jobs, placed by random"]
    assert slowed.rows[0][1:4] == ("0", DASH, DASH)
    assert slowed.rows[1][1:4] == ("1", "2.000", "2.000")
    star = tmp_path / "star.yaml"
    star.write_text(
        "topology: {kind: star, hosts: 64, host_link_gbps: 800}\nmodels: {}\nlabels: {}\nothers: [{model: gpt}]\n"
    )
    assert CruxTrace(assumptions=star).findings(list(results.items())).tables[0].rows[0][2] == DASH


@pytest.mark.parametrize(("topology", "least", "most"), [("clos", 13, 23), ("double_sided", 4, 7)])
def test_the_papers_gains_are_those_of_its_text(topology: str, least: int, most: int) -> None:
    printed = PUBLISHED[topology].printed
    others = ("sincronia", "taccl-star", "cassini")
    gains = {round(100 * (printed["crux"] - printed[policy])) for policy in others}
    assert (min(gains), max(gains)) == (least, most)
