from xml.etree import ElementTree

import pytest

from experiments.report.charts import busiest_links, link_loads, link_name, mean_loads, utilisation_bars
from tests.experiments.report.builders import links_between, make_fabric, make_loads, make_result

FABRIC = make_fabric()
UP = links_between(FABRIC, "t0", "a0")
DOWN = links_between(FABRIC, "a0", "t1")
HOST = links_between(FABRIC, "h0", "t0")


def test_bars_are_as_long_as_utilisation_is_high() -> None:
    drawing = ElementTree.fromstring(utilisation_bars([make_result("ecmp", 0.3), make_result("crux", 0.6)]))
    full, *_ = (float(track.attrib["width"]) for track in drawing.findall("rect[@class='track']"))
    bars = [float(bar.attrib["width"]) for bar in drawing.findall("rect[@class='compute']")]
    assert bars == pytest.approx([0.3 * full, 0.6 * full])


def test_ideal_and_bound_are_marked_on_the_scale_of_the_bars() -> None:
    drawing = ElementTree.fromstring(utilisation_bars([make_result(gpu_utilisation=0.5)]))
    bar = drawing.findall("rect[@class='compute']")[0]
    zero, half = float(bar.attrib["x"]), float(bar.attrib["width"])
    for mark, value in (("ideal", 0.9), ("bound", 0.8)):
        (found,) = drawing.findall(f"line[@class='{mark}']")
        assert float(found.attrib["x1"]) == pytest.approx(zero + 2 * value * half)


def test_busiest_links_are_those_between_switches_that_some_policy_loads_most() -> None:
    first = make_result("ecmp", loads=make_loads(FABRIC, {(UP[0], 0): 0.3, (HOST[0], 0): 1.0, (DOWN[0], 0): 0.005}))
    second = make_result("crux", loads=make_loads(FABRIC, {(DOWN[1], 7): 0.3, (DOWN[1], 2): 0.1, (UP[1], 7): 0.2}))
    assert busiest_links([first, second], 8) == (DOWN[1], UP[0], UP[1])
    assert busiest_links([first, second], 2) == (DOWN[1], UP[0])


def test_mean_loads_count_inside_the_window_and_without_samples_are_nought() -> None:
    before, rest = make_loads(FABRIC, {(UP[0], 3): 1.0})[:10], make_loads(FABRIC, {(UP[0], 3): 0.5})[10:]
    assert rest[0].from_s == make_result().window_from_s
    assert mean_loads(make_result(loads=(*before, *rest)))[UP[0]] == pytest.approx(0.5)
    assert mean_loads(make_result(loads=()))[UP[0]] == 0.0


def test_levels_are_stacked_with_the_most_urgent_at_the_bottom() -> None:
    result = make_result(loads=make_loads(FABRIC, {(UP[0], 7): 0.25, (UP[0], 1): 0.5}))
    drawing = ElementTree.fromstring(link_loads([result], [UP[0]], 2.0, 6.0))
    (panel,) = drawing.findall("rect[@class='track']")
    bottom = float(panel.attrib["y"]) + float(panel.attrib["height"])
    reach = {}
    for area in drawing.findall("polygon"):
        heights = [
            (bottom - float(point.split(",")[1])) / float(panel.attrib["height"])
            for point in area.attrib["points"].split()
        ]
        reach[area.attrib["class"]] = (min(heights), max(heights))
    assert reach["level-7"] == pytest.approx((0.0, 0.25), abs=0.01)
    assert reach["level-1"] == pytest.approx((0.25, 0.75), abs=0.01)
    assert len(reach) == 2


def test_a_look_with_too_few_samples_gives_way_to_the_whole_run() -> None:
    result = make_result()
    close = link_loads([result], [UP[0]], 5.0, 7.0)
    too_close = link_loads([result], [UP[0]], 5.0, 5.3)
    assert ">6.0 s<" in close
    assert ">0.0 s<" not in close
    assert ">0 s<" in too_close


def test_parallel_links_are_told_apart() -> None:
    arrow = "\N{RIGHTWARDS ARROW}"
    assert link_name(make_result(), UP[1]) == f"t0 {arrow} a0 #1"
