import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from experiments.report.bars import findings_bars, utilisation_bars
from experiments.report.figure import ReportFigure, embedded_svg, figure_settings, save_figures, slug, with_unique_names
from experiments.report.findings import Bar, BarChart
from experiments.report.over_time import timeline
from experiments.report.style import COLOURS, FigureFormat, colour
from experiments.report.time_axis import TimeSpan
from tests.experiments.report.builders import make_result

HOSTILE = "<script>$x_1$ & \"'</script>"


def bars(*names: str) -> ReportFigure:
    return findings_bars(BarChart("Made up", tuple(Bar(name, "50 %", 0.5) for name in names)))


@pytest.mark.parametrize("file_format", FigureFormat)
def test_the_same_figure_gives_the_same_bytes(tmp_path: Path, file_format: FigureFormat) -> None:
    written = []
    for folder in ("one", "two"):
        (path,) = save_figures([bars("a", "b")], tmp_path / folder, file_format)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert path.name == f"made-up.{file_format}"


def test_data_lie_beside_the_figure_as_csv(tmp_path: Path) -> None:
    figure = bars(HOSTILE)
    save_figures([figure], tmp_path, FigureFormat.SVG)
    rows = list(csv.reader(io.StringIO((tmp_path / "made-up.csv").read_text(encoding="utf-8"))))
    assert rows == [["label", "value", "share", "deviation", "published"], [HOSTILE, "50 %", "0.5", "", "false"]]


def test_text_of_a_saved_svg_stays_text_and_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    (path,) = save_figures([bars(HOSTILE)], tmp_path, FigureFormat.SVG)
    texts = [found.text for found in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert HOSTILE in texts


def test_an_embedded_figure_follows_the_theme_of_the_page() -> None:
    svg = embedded_svg(utilisation_bars([make_result("ecmp"), make_result("crux")]))
    assert "var(--series-0)" in svg
    assert "var(--ink)" in svg
    assert not re.search(r"#[0-9a-f]{6}", svg)
    assert "font-family" not in svg


def test_light_colours_name_one_variable_each() -> None:
    assert len({both.light for both in COLOURS.values()}) == len(COLOURS)
    assert all(re.fullmatch("#[0-9a-f]{6}", shade) for both in COLOURS.values() for shade in (both.light, both.dark))


def test_identifiers_in_a_page_are_those_of_one_figure() -> None:
    svg = embedded_svg(timeline(make_result(), TimeSpan(2.0, 4.0)))
    identifiers = re.findall(r'\bid="([^"]+)"', svg)
    assert identifiers
    assert all(identifier.startswith("made-up-timeline-ecmp-") for identifier in identifiers)
    assert len(set(identifiers)) == len(identifiers)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(identifiers)


def test_an_embedded_figure_has_words_for_those_who_do_not_see_it() -> None:
    drawn = ElementTree.fromstring(embedded_svg(bars("a", "b")))
    assert (drawn.get("role"), drawn.get("aria-label")) == ("img", "Made up: a 50 %, b 50 %")
    assert not list(drawn.iter("style"))
    assert not list(drawn.iter("metadata"))


def test_marks_have_tooltips() -> None:
    drawn = ElementTree.fromstring(embedded_svg(timeline(make_result(), TimeSpan(2.0, 3.0))))
    tips = [title.text for title in drawn.iter("title")]
    assert "gpt, iteration 2: computes 2.000 to 2.500 s" in tips
    assert "gpt, iteration 2: ring under way 2.500 to 3.000 s" in tips


def test_settings_of_the_caller_stay() -> None:
    before = dict(matplotlib.rcParams)
    embedded_svg(bars("a"))
    assert dict(matplotlib.rcParams) == before
    with figure_settings():
        assert matplotlib.rcParams["text.color"] == colour("ink")


@pytest.mark.filterwarnings("error")
def test_a_name_that_the_font_lacks_is_drawn_without_a_warning() -> None:
    assert "訓練" in embedded_svg(bars("訓練"))


@pytest.mark.parametrize(
    ("words", "name"), [("Fig 19: n=4", "fig-19-n-4"), ("../../etc", "etc"), ("训练", "figure"), ("a" * 99, "a" * 60)]
)
def test_file_names_are_plain(words: str, name: str) -> None:
    assert slug(words) == name


def test_figures_of_one_name_are_numbered() -> None:
    named = with_unique_names([bars("a"), bars("b"), bars("c")])
    assert [figure.name for figure in named] == ["made-up", "made-up-2", "made-up-3"]
