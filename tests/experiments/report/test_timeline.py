from dataclasses import replace
from xml.etree import ElementTree

import pytest

from experiments.report.timeline import timeline
from experiments.scenarios.results import JobResult
from tests.experiments.report.builders import make_job, make_result
from workloads.events import ElementState, ScenarioEvent
from workloads.replay import ComputeInterval


def _draw(job: JobResult, from_s: float, to_s: float) -> ElementTree.Element:
    return ElementTree.fromstring(timeline(make_result(jobs=(job,)), from_s, to_s))


def _rectangles(drawing: ElementTree.Element, class_: str) -> list[tuple[float, float, float, float]]:
    """Left and right edge, top and height."""
    return [
        (x, x + float(found.attrib["width"]), float(found.attrib["y"]), float(found.attrib["height"]))
        for found in drawing.findall(f"rect[@class='{class_}']")
        for x in (float(found.attrib["x"]),)
    ]


def test_lanes_show_what_lies_between_the_two_times() -> None:
    drawing = _draw(make_job(level=5), 2.25, 4.25)
    (left, right, *_), _ = _rectangles(drawing, "track")
    second = (right - left) / 2
    edges = [(x - left) / second for interval in _rectangles(drawing, "compute") for x in interval[:2]]
    assert edges == pytest.approx([0, 0.25, 0.75, 1.25, 1.75, 2], abs=1e-3)
    edges = [(x - left) / second for interval in _rectangles(drawing, "level-5") for x in interval[:2]]
    assert edges == pytest.approx([0.25, 0.75, 1.25, 1.75], abs=1e-3)


def test_a_job_without_level_communicates_in_the_lowest() -> None:
    assert _rectangles(_draw(make_job(level=None), 2.0, 3.0), "level-0")


def test_computations_that_follow_each_other_are_one_with_seams_between_iterations() -> None:
    job = replace(
        make_job(),
        computing=tuple(
            ComputeInterval(name, ("h0",), number, number + start_s, number + start_s + 0.5)
            for number in range(3)
            for name, start_s in (("before", 0.0), ("during", 0.5))
        ),
    )
    drawing = _draw(job, 0.5, 2.5)
    assert len(_rectangles(drawing, "compute")) == 3
    assert len(drawing.findall("line[@class='seam']")) == 2


def test_height_is_the_share_of_hosts_that_compute() -> None:
    stages = (ComputeInterval("first", ("h0",), 0, 0.0, 2.0), ComputeInterval("second", ("h1",), 0, 1.0, 3.0))
    shown = _rectangles(_draw(replace(make_job(), computing=stages), 0.0, 3.0), "compute")
    heights = [height for *_, height in shown]
    assert heights == [heights[1] / 2, heights[1], heights[1] / 2]
    assert len({top + height for *_, top, height in shown}) == 1


def test_a_pause_inside_an_iteration_is_a_gap() -> None:
    parts = (ComputeInterval("forward", ("h0",), 0, 0.0, 1.0), ComputeInterval("backward", ("h0",), 0, 2.0, 3.0))
    first, second = _rectangles(_draw(replace(make_job(), computing=parts), 0.0, 3.0), "compute")
    assert second[0] - first[1] == pytest.approx(first[1] - first[0], abs=0.02)


def test_events_in_sight_are_marked_at_their_time_and_named() -> None:
    events = (
        ScenarioEvent(at_s=1.0, switch="t0", state=ElementState.DOWN),
        ScenarioEvent(at_s=2.5, controller=0, state=ElementState.DOWN),
        ScenarioEvent(at_s=3.5, link=("t0", "a1"), parallel=1, state=ElementState.UP),
    )
    drawing = ElementTree.fromstring(timeline(make_result(events=events), 2.0, 4.0))
    (left, right, *_), _ = _rectangles(drawing, "track")
    marks = drawing.findall("line[@class='event']")
    assert [float(mark.attrib["x1"]) for mark in marks] == [left + (right - left) / 4, left + 3 * (right - left) / 4]
    words = [found.text for found in drawing.findall("text[@class='note']")]
    assert words[-2:] == ["controller down at 2.5 s", "cable t0 to a1 (1) up at 3.5 s"]
    height = float(drawing.attrib["viewBox"].split()[-1])
    assert all(float(mark.attrib["y2"]) < height for mark in marks)
