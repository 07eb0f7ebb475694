import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.report.page import page, write_report
from tests.experiments.report.builders import make_job, make_result


def _words(html: str) -> str:
    """What the page says, without its tags."""
    return re.sub(r"<[^>]+>", " ", html).replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


def test_the_headline_says_what_utilisation_is_without_and_with() -> None:
    words = _words(page([[make_result("ecmp", 0.5), make_result("crux", 0.75)]]))
    assert "GPUs compute 50.0 % of the time under ecmp, 75.0 % under crux." in words
    assert "crux +25.0 points" in words


def test_the_table_compares_every_policy_with_the_first() -> None:
    first = make_result("ecmp", jobs=(make_job("a", 2.0), make_job("b", 1.0)))
    second = make_result("crux", jobs=(make_job("b", 1.5, level=3), make_job("a", 1.0, level=6)))
    rows = [" ".join(_words(row).split()) for row in re.findall(r"<tr>.*?</tr>", page([[first, second]]))]
    assert rows == [
        "Job GPUs Ideal ecmp crux change level",
        "a 8 0.800 s 2.000 s 1.000 s -50.0 % 6",
        "b 8 0.800 s 1.000 s 1.500 s +50.0 % 3",
    ]


def test_the_page_needs_nothing_but_itself() -> None:
    results = [make_result("ecmp"), make_result("crux")]
    html = page([results, [replace(result, scenario="second") for result in results]])
    assert not re.search(r"<script|<link|<img|<iframe|src=|href=\"[^#]|url\(|@import|https?:", html)


def test_several_scenarios_are_told_apart_by_an_overview() -> None:
    mixes = [
        [make_result("ecmp", 0.5, scenario=name), make_result("crux", with_it, scenario=name)]
        for name, with_it in (("first mix", 0.6), ("second mix", 0.7))
    ]
    html = page(mixes)
    rows = [" ".join(_words(row).split()) for row in re.findall(r"<tr>.*?</tr>", html)]
    assert rows[:3] == [
        "Scenario ecmp crux ideal fluid bound",
        "first mix 50.0 % 60.0 % 90.0 % 80.0 %",
        "second mix 50.0 % 70.0 % 90.0 % 80.0 %",
    ]
    assert re.findall(r'href="#([^"]+)"', html) == re.findall(r'<article id="([^"]+)"', html)
    assert "overview" not in page(mixes[:1]).partition("</style>")[2]


def test_every_picture_is_well_formed_and_has_no_number_that_is_none() -> None:
    html = page([[make_result("ecmp"), make_result("crux")]])
    pictures = re.findall(r"<svg.*?</svg>", html)
    assert len(pictures) > 5
    for picture in pictures:
        ElementTree.fromstring(picture)
    assert not re.search(r"\b(nan|inf|None)\b", html)


def test_names_are_text_and_never_markup() -> None:
    nasty = "<script>alert(1)</script>&\"'"
    html = page([[make_result(nasty, jobs=(make_job(nasty),), scenario=nasty)]])
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in html


def test_a_run_without_samples_or_whole_iterations_still_makes_a_page() -> None:
    jobs = (make_job(iteration_time_s=None, level=None, intensity=None),)
    empty = replace(make_result("crux", jobs=jobs, loads=()), flows=())
    words = _words(page([[empty, replace(empty, policy="ecmp")]]))
    assert "No load was recorded" in words
    assert "gpt 8 0.800 s \N{EN DASH} \N{EN DASH}" in " ".join(words.split())


def test_results_of_different_scenarios_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one scenario, not of \['a', 'b'\]"):
        page([[make_result(scenario="a"), make_result(scenario="b")]])
    with pytest.raises(ValueError, match="not of none"):
        page([[]])
    with pytest.raises(ValueError, match="a scenario at least"):
        page([])


def test_the_page_is_written_as_utf_8(tmp_path: Path) -> None:
    results = [[make_result(scenario="Zürich")]]
    write_report(results, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page(results)
    assert "Zürich" in page(results)
