import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.report.findings import Bar, BarChart, Findings, FindingsTable, Panel, PanelChart
from experiments.report.page import Comparisons, findings_report, runs_report, sweep_report
from experiments.report.style import FigureFormat
from experiments.sweeps.summary import Cell, Spread
from tests.experiments.report.builders import make_job, make_result
from workloads.events import ElementState, ScenarioEvent

HOSTILE = "<script>alert(1)</script>&\"'"
FINDINGS = Findings(
    "An evaluation",
    (FindingsTable("Utilisation", ("Policy", "Mean"), (("ecmp", "50 %"), ("crux", "75 %"))),),
    (BarChart("Utilisation", (Bar("ecmp", "50 %", 0.5),)), PanelChart("GPUs", "", 1.0, (Panel("a", "", (1,), (0,)),))),
    ("Hosts are ours.",),
)
DOWN = ScenarioEvent(at_s=3.0, link=("t0", "a0"), state=ElementState.DOWN)


def page(comparisons: Comparisons) -> str:
    return runs_report(comparisons).html()


def words_of(html: str) -> str:
    """What a page or a part of it says, without tags."""
    words = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    words = re.sub(r"<[^>]+>", " ", words).replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
    return " ".join(words.split())


def tables_of(html: str) -> list[list[str]]:
    """Words of the caption and the rows of every table."""
    tables = re.findall(r"<table>.*?</table>", html, re.DOTALL)
    return [
        [words_of(part) for part in re.findall(r"<caption>.*?</caption>|<tr>.*?</tr>", one, re.DOTALL)]
        for one in tables
    ]


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def all_pages() -> list[str]:
    results = [make_result("ecmp", events=(DOWN,)), make_result("crux", events=(DOWN,))]
    spread = Spread(0.5, 0.1, 0.4, 0.5, 0.6)
    return [
        page([results, [replace(result, scenario="second") for result in results]]),
        findings_report(FINDINGS, [results]).html(),
        sweep_report([Cell("fig20", {"jobs": 2}, "crux", 3, 1, spread, 0.9, 2, 0.5)]).html(),
    ]


def test_the_headline_says_what_utilisation_is_without_and_with() -> None:
    words = words_of(page([[make_result("ecmp", 0.5), make_result("crux", 0.75)]]))
    assert "GPUs compute 50.0 % of the time under ecmp, 75.0 % under crux." in words
    assert "crux +25.0 points" in words


def test_the_headline_of_eleven_policies_names_two() -> None:
    results = [make_result(f"policy-{number}", 0.3 + number / 100) for number in range(11)]
    (headline,) = re.findall(r"<h1>(.*?)</h1>", page([results]))
    assert (
        words_of(headline)
        == "GPUs compute 30.0 % of the time under policy-0, 40.0 % under policy-10, the best of 10 others."
    )


def test_tables_compare_every_policy_with_the_first() -> None:
    first = make_result("ecmp", jobs=(make_job("a", 2.0), make_job("b", 1.0)))
    second = make_result("crux", 0.75, jobs=(make_job("b", 1.5, level=3), make_job("a", 1.0, level=6)))
    assert tables_of(page([[first, second]])) == [
        [
            "GPU utilisation of every policy",
            "Policy Utilisation Points against ecmp Ideal Fluid bound Worst slowdown Starved jobs",
            "ecmp 50.0 % \N{EN DASH} 90.0 % 80.0 % 2.50 0",
            "crux 75.0 % +25.0 90.0 % 80.0 % 1.88 0",
        ],
        [
            "a: 8 GPUs, ideal 0.800 s",
            "Policy Iteration time Against ecmp Level",
            "ecmp 2.000 s \N{EN DASH} 7",
            "crux 1.000 s -50.0 % 6",
        ],
        [
            "b: 8 GPUs, ideal 0.800 s",
            "Policy Iteration time Against ecmp Level",
            "ecmp 1.000 s \N{EN DASH} 7",
            "crux 1.500 s +50.0 % 3",
        ],
    ]


def test_utilisation_between_events_has_a_column_from_each_event_on() -> None:
    results = [make_result("ecmp", 0.5, events=(DOWN,)), make_result("crux", 0.75, events=(DOWN,))]
    (table,) = [table for table in tables_of(page([results])) if table[0] == "GPU utilisation between events"]
    assert table[1:] == ["Policy From 1 s From 3 s: cable t0 to a0 down", "ecmp 50.0 % 50.0 %", "crux 75.0 % 75.0 %"]


def test_every_table_has_a_caption_and_every_heading_a_scope() -> None:
    for html in all_pages():
        tags = Tags(html).found
        names = [name for name, _ in tags]
        assert names.count("table") == names.count("caption") > 0
        assert {attributes.get("scope") for name, attributes in tags if name == "th"} == {"col", "row"}
        rows = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
        assert all(row.count("<th") >= 1 for row in rows)


def test_the_page_needs_nothing_but_itself() -> None:
    for html in all_pages():
        assert not re.search(r"<script|<link|<img|<iframe|src=|href=\"[^#]|url\([^#]|@import|https?:", html)


def test_identifiers_are_unique_on_a_page() -> None:
    for html in all_pages():
        identifiers = [attributes["id"] for _, attributes in Tags(html).found if "id" in attributes]
        assert len(identifiers) == len(set(identifiers))


def test_several_scenarios_are_told_apart_by_an_overview() -> None:
    mixes = [
        [make_result("ecmp", 0.5, scenario=name), make_result("crux", with_it, scenario=name)]
        for name, with_it in (("first mix", 0.6), ("second mix", 0.7))
    ]
    html = page(mixes)
    assert tables_of(html)[0][1:] == [
        "Scenario ecmp crux ideal fluid bound",
        "first mix 50.0 % 60.0 % 90.0 % 80.0 %",
        "second mix 50.0 % 70.0 % 90.0 % 80.0 %",
    ]
    assert re.findall(r'<a href="#([^"]+)"', html) == re.findall(r'<article id="([^"]+)"', html)
    assert "overview" not in page(mixes[:1]).partition("</style>")[2]


def test_every_picture_is_well_formed_and_has_no_number_that_is_none() -> None:
    html = page([[make_result("ecmp"), make_result("crux")]])
    pictures = re.findall(r"<svg.*?</svg>", html)
    assert len(pictures) == 7
    for picture in pictures:
        ElementTree.fromstring(picture)
    assert not re.search(r"\b(nan|inf|None)\b", html)


def test_names_are_text_and_never_markup() -> None:
    findings = Findings(
        HOSTILE,
        (FindingsTable(HOSTILE, (HOSTILE, HOSTILE), ((HOSTILE, HOSTILE),)),),
        (BarChart(HOSTILE, (Bar(HOSTILE, HOSTILE, 0.5),)),),
        (HOSTILE,),
    )
    hostile = make_result(HOSTILE, jobs=(make_job(HOSTILE),), scenario=HOSTILE)
    plain = make_result("plain", jobs=(make_job("plain"),), scenario="plain")
    html, allowed = (findings_report(findings, [[result]]).html() for result in (hostile, plain))
    assert {tag for tag, _ in Tags(html).found} == {tag for tag, _ in Tags(allowed).found}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in html


def test_a_run_without_samples_or_whole_iterations_still_makes_a_page() -> None:
    jobs = (make_job(iteration_time_s=None, level=None, intensity=None),)
    empty = replace(make_result("crux", jobs=jobs, loads=()), flows=())
    words = words_of(page([[empty, replace(empty, policy="ecmp")]]))
    assert "No load was recorded" in words
    assert "ecmp \N{EN DASH} \N{EN DASH} \N{EN DASH}" in words


def test_results_of_different_scenarios_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one scenario, not of \['a', 'b'\]"):
        runs_report([[make_result(scenario="a"), make_result(scenario="b")]])
    with pytest.raises(ValueError, match="not of none"):
        runs_report([[]])
    with pytest.raises(ValueError, match="a scenario at least"):
        runs_report([])


def test_the_same_results_give_the_same_bytes() -> None:
    results = [make_result("ecmp", events=(DOWN,)), make_result("crux", events=(DOWN,))]
    assert page([results]) == page([results])


def test_the_page_is_written_as_utf_8_and_every_figure_has_its_data_beside_it(tmp_path: Path) -> None:
    report = runs_report([[make_result(scenario="Zürich"), make_result("crux", scenario="Zürich")]])
    report.write(tmp_path / "report.html", tmp_path / "figures", FigureFormat.PDF)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()
    assert "Zürich" in report.html()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    stems = ["z-rich-utilisation"]
    stems += [f"z-rich-{kind}-{policy}" for kind in ("timeline", "load", "topology") for policy in ("ecmp", "crux")]
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("pdf", "csv")}


def test_a_sweep_shows_its_settings_and_failures_where_there_are_any() -> None:
    spread = Spread(0.5, 0.1, 0.4, 0.5, 0.6)
    plain = Cell("fig20", {}, "crux", 3, 0, spread, 0.9, 2, 0.5)
    (table,) = tables_of(sweep_report([plain]).html())
    assert table[1:] == [
        "Scenario Policy Seeds Mean Deviation p5 p50 p95 Limit Worst slowdown Starved jobs",
        "fig20 crux 3 50.0 % 10.0 % 40.0 % 50.0 % 60.0 % 90.0 % 2.00 2",
    ]
    (table,) = tables_of(sweep_report([replace(plain, settings={"jobs": 2}, failed=1)]).html())
    assert table[2].startswith("fig20 jobs=2 crux 3 1 50.0 %")
