import pytest

from experiments.report.curves import distribution_curves, panels
from experiments.report.findings import Distribution, DistributionChart, Panel, PanelChart


def chart(*distributions: Distribution) -> DistributionChart:
    return DistributionChart("Errors", "error", distributions)


def test_a_curve_climbs_by_a_step_a_case_and_ends_at_the_right() -> None:
    drawn = distribution_curves(chart(Distribution("crux", 0, (0.5, 0.0))))
    (line,) = drawn.figure.axes[0].lines
    assert [tuple(point) for point in line.get_xydata()] == [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (0.5, 1.0)]
    assert line.get_drawstyle() == "steps-post"
    assert drawn.data.rows == (("crux", "measured", 0.0, 0.5), ("crux", "measured", 0.5, 1.0))


@pytest.mark.parametrize(
    ("values", "limits"),
    [((0.0, 0.08), (0.0, 0.08)), ((0.01, 0.093), (0.0, 0.1)), ((0.96, 0.99), (0.96, 0.99)), ((0.0, 1.0), (0.0, 1.0))],
)
def test_the_axis_fits_what_was_measured(values: tuple[float, ...], limits: tuple[float, float]) -> None:
    published = ((0.9, 1.0),)
    drawn = distribution_curves(chart(Distribution("crux", 0, values, published)))
    assert drawn.figure.axes[0].get_xlim() == pytest.approx(limits)


def test_published_points_are_hollow_and_lie_at_the_edge_where_the_axis_ends_before_them() -> None:
    drawn = distribution_curves(chart(Distribution("crux", 0, (0.0, 0.1), ((0.05, 0.5), (0.9, 1.0)))))
    _, *points = drawn.figure.axes[0].lines
    assert [(*point.get_xydata()[0], point.get_marker()) for point in points] == [(0.05, 0.5, "o"), (0.1, 1.0, ">")]
    assert {point.get_markerfacecolor() for point in points} == {"none"}
    words = [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    assert sorted(words) == ["crux", "published", "published, farther right"]
    assert ("crux", "published", 0.9, 1.0) in drawn.data.rows


def test_curves_differ_in_colour_and_in_dashes() -> None:
    drawn = distribution_curves(chart(*(Distribution(str(number), number, (0.1,)) for number in range(5))))
    lines = drawn.figure.axes[0].lines
    assert len({str(line.get_color()) for line in lines}) == 5
    assert len({str(line.get_linestyle()) + str(line.__dict__["_unscaled_dash_pattern"]) for line in lines}) == 5


def test_the_description_tells_the_means() -> None:
    drawn = distribution_curves(chart(Distribution("a", 3, (0.1, 0.3)), Distribution("c", 4, (1.0,))))
    assert drawn.description == "Errors: mean error a 20.0%, c 100.0%"


def test_thousands_of_cases_are_thinned_but_for_the_last() -> None:
    values = tuple(number / 10_000 for number in range(5000))
    drawn = distribution_curves(chart(Distribution("many", 0, values)))
    assert len(drawn.data.rows) < 1000
    assert drawn.data.rows[-1] == ("many", "measured", values[-1], 1.0)


def test_the_part_lies_below_the_whole_and_time_goes_to_the_right() -> None:
    drawn = panels(PanelChart("GPUs", "up to 8 GPUs", 2.0, (Panel("a", "50 %", (1.0, 0.5), (0.5, 0.25)),)))
    (axes,) = drawn.figure.axes
    whole, part = (patch.get_data() for patch in axes.patches)  # type: ignore[attr-defined]
    assert (list(whole.values), list(part.values), list(part.edges)) == ([1.0, 0.5], [0.5, 0.25], [0.0, 1.0, 2.0])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["day 0", "day 1", "day 2"]
    assert drawn.data.rows == (("a", 0.0, 1.0, 1.0, 0.5), ("a", 1.0, 2.0, 0.5, 0.25))


def test_long_series_are_averaged_and_weeks_have_few_ticks() -> None:
    values = [float(number % 2) for number in range(2016)]
    drawn = panels(PanelChart("GPUs", "", 56.0, (Panel("a", "", values, values),)))
    assert len(drawn.data.rows) <= 252
    assert {row[3] for row in drawn.data.rows} == {0.5}
    assert len(drawn.figure.axes[0].get_xticks()) <= 7
