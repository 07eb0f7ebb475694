import re
from itertools import pairwise

from experiments.report.panels import Panel, PanelChart, draw_panels


def _heights(svg: str) -> list[list[tuple[float, float]]]:
    polygons = re.findall(r'points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (one.split(",") for one in points.split())] for points in polygons]


def test_the_part_lies_below_the_whole_and_time_goes_to_the_right() -> None:
    chart = PanelChart("GPUs", "up to 8 <GPUs>", 2.0, (Panel("a", "50 %", (1.0, 0.5), (0.5, 0.25)),))
    svg = draw_panels(chart)
    whole, part = _heights(svg)
    assert whole == [(132, 70), (132, 0), (566, 0), (566, 35), (1000, 35), (1000, 70)]
    assert part == [(132, 70), (132, 35), (566, 35), (566, 52.5), (1000, 52.5), (1000, 70)]
    assert [f"day {day}" in svg for day in range(4)] == [True, True, True, False]
    assert "up to 8 &lt;GPUs&gt;" in svg


def test_long_series_are_averaged_and_weeks_have_few_ticks() -> None:
    values = [float(number % 2) for number in range(2016)]
    svg = draw_panels(PanelChart("GPUs", "", 56.0, (Panel("a", "", values, values),)))
    (area, _) = _heights(svg)
    assert len(area) <= 2 * 336 + 2
    assert {y for _, y in area[1:-1]} == {35.0}
    assert all(before[0] <= after[0] for before, after in pairwise(area))
    assert svg.count("day ") == 15
