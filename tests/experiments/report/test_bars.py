import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from experiments.report.bars import findings_bars, sweep_bars, utilisation_bars
from experiments.report.figure import ReportFigure
from experiments.report.findings import Bar, BarChart
from experiments.report.style import WIDTH_PT, colour
from experiments.sweeps.summary import Cell, Spread
from tests.experiments.report.builders import make_result


def axes_of(drawn: ReportFigure) -> Axes:
    (axes,) = drawn.figure.axes
    return axes


def widths(drawn: ReportFigure) -> list[float]:
    """Widths of the bars, without their tracks, in the units of the data."""
    axes = axes_of(drawn)
    patches = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [patch.get_width() for patch in patches if patch.get_width() != axes.get_xlim()[1]]


def error_bars(drawn: ReportFigure) -> list[tuple[float, float]]:
    """Ends of the horizontal lines of error bars."""
    lines = [found for found in axes_of(drawn).collections if isinstance(found, LineCollection)]
    segments = [segment for found in lines for segment in found.get_segments()]
    return [(start[0], end[0]) for start, end in segments if start[1] == end[1]]


def cell(policy: str, mean: float, deviation: float, scenario: str = "fig20") -> Cell:
    spread = Spread(mean, deviation, mean - deviation, mean, mean + deviation)
    return Cell(scenario, {}, policy, 3, 0, spread, 0.9, 2, 0.5)


def test_bars_are_as_long_as_utilisation_is_high_and_the_csv_says_so() -> None:
    drawn = utilisation_bars([make_result("ecmp", 0.3), make_result("crux", 0.6)])
    assert widths(drawn) == [0.3, 0.6]
    assert drawn.data.rows == (("ecmp", 0.3, 0.9, 0.8), ("crux", 0.6, 0.9, 0.8))


def test_ideal_and_bound_are_marked_on_the_scale_of_the_bars() -> None:
    drawn = utilisation_bars([make_result(gpu_utilisation=0.5)])
    lines = [found for found in axes_of(drawn).collections if isinstance(found, LineCollection)]
    assert sorted(segment[0][0] for found in lines for segment in found.get_segments()) == [0.8, 0.9]
    (legend,) = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ideal", "fluid bound"]


@pytest.mark.parametrize("highest", [0.04, 0.5, 3.0])
def test_the_scale_fits_the_data(highest: float) -> None:
    drawn = findings_bars(BarChart("Errors", (Bar("a", "", highest), Bar("b", "", highest / 4))))
    left, right = axes_of(drawn).get_xlim()
    assert left == 0
    assert highest < right < 1.1 * highest


def test_deviations_are_error_bars_and_the_scale_holds_them() -> None:
    drawn = findings_bars(BarChart("Utilisation", (Bar("a", "50 %", 0.5, deviation=0.25), Bar("b", "40 %", 0.4))))
    assert error_bars(drawn) == [(0.25, 0.75)]
    assert axes_of(drawn).get_xlim()[1] > 0.75
    (legend,) = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["standard deviation"]
    assert [row[3] for row in drawn.data.rows] == [0.25, None]


def test_published_bars_are_hatched() -> None:
    drawn = findings_bars(BarChart("Utilisation", (Bar("ours", "", 0.5), Bar("paper", "", 0.4, published=True))))
    bars = {patch.get_width(): patch for patch in axes_of(drawn).patches if isinstance(patch, Rectangle)}
    assert (bars[0.5].get_hatch(), bars[0.4].get_hatch()) == (None, "////")


def test_eleven_policies_have_a_line_each_and_no_words_overlap() -> None:
    names = [f"a-policy-of-somebody-with-a-long-name-{number}" for number in range(11)]
    drawn = utilisation_bars([make_result(name) for name in names])
    drawn.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.figure.texts if text.get_text()]
    assert len(boxes) == 2 * len(names)
    assert all(box.x0 >= 0 and box.x1 <= WIDTH_PT for box in boxes)
    overlaps = [1 for n, box in enumerate(boxes) for other in boxes[n + 1 :] if box.overlaps(other)]
    assert not overlaps


def test_a_sweep_has_an_error_bar_for_every_cell() -> None:
    drawn = sweep_bars([cell("ecmp", 0.5, 0.125), cell("crux", 0.75, 0.0625)])
    assert error_bars(drawn) == [(0.375, 0.625), (0.6875, 0.8125)]
    assert [row[2:6] for row in drawn.data.rows] == [("ecmp", 3, 0.5, 0.125), ("crux", 3, 0.75, 0.0625)]


def test_policies_keep_their_colour_in_every_scenario_of_a_sweep() -> None:
    cells = [cell(policy, 0.5, 0.1, name) for name in ("a", "b") for policy in ("ecmp", "crux")]
    patches = [patch for patch in axes_of(sweep_bars(cells)).patches if isinstance(patch, Rectangle)]
    shades = [patch.get_facecolor() for patch in patches if patch.get_width() == 0.5]
    assert shades[:2] == shades[2:]
    assert shades[0] != shades[1]


def test_a_sweep_without_a_finished_run_has_no_figure() -> None:
    with pytest.raises(ValueError, match="a finished run"):
        sweep_bars([Cell("fig20", {}, "ecmp", 0, 3, None, None, 0, None)])


def test_series_colours_differ_from_each_other() -> None:
    assert len({colour(f"series-{number}") for number in range(8)}) == 8
