from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle, StepPatch

from experiments.report.figure import ReportFigure
from experiments.report.link_names import link_name
from experiments.report.over_time import (
    busiest_links,
    link_loads,
    load_limit,
    mean_loads,
    recovery,
    timeline,
)
from experiments.report.style import colour
from experiments.report.time_axis import TimeSpan
from experiments.scenarios.results import JobResult
from tests.experiments.report.builders import links_between, make_fabric, make_job, make_loads, make_result
from workloads.events import ElementState, ScenarioEvent
from workloads.replay import ComputeInterval

FABRIC = make_fabric()
UP = links_between(FABRIC, "t0", "a0")
DOWN = links_between(FABRIC, "a0", "t1")
HOST = links_between(FABRIC, "h0", "t0")
CABLE_DOWN = ScenarioEvent(at_s=3.0, link=("t0", "a0"), state=ElementState.DOWN)
CABLE_UP = ScenarioEvent(at_s=6.0, link=("t0", "a0"), state=ElementState.UP)


def draw(job: JobResult, from_s: float, to_s: float) -> ReportFigure:
    return timeline(make_result(jobs=(job,)), TimeSpan(from_s, to_s))


def marks(drawn: ReportFigure, name: str) -> list[Rectangle]:
    axes = drawn.figure.axes[0]
    return [
        mark for mark in axes.artists + list(axes.patches)
        if isinstance(mark, Rectangle) and mark.get_gid() and to_hex(mark.get_facecolor()) == colour(name)
    ]  # fmt: skip


def spans(drawn: ReportFigure, name: str) -> list[tuple[float, float]]:
    return [(mark.get_x(), mark.get_x() + mark.get_width()) for mark in marks(drawn, name)]


def areas(axes: Axes) -> list[StepPatch]:
    return [found for found in axes.get_children() if isinstance(found, StepPatch)]


def test_lanes_show_what_lies_between_the_two_times() -> None:
    drawn = draw(make_job(level=5), 2.25, 4.25)
    assert spans(drawn, "compute") == [(2.25, 2.5), (3.0, 3.5), (4.0, 4.25)]
    assert spans(drawn, "level-5") == [(2.5, 3.0), (3.5, 4.0)]


def test_the_data_of_a_timeline_are_its_whole_intervals() -> None:
    rows = draw(make_job(), 2.25, 3.0).data.rows
    assert rows == (
        ("gpt", "compute", "", 2, 2.0, 2.5, 1.0),
        ("gpt", "communicate", "ring", 2, 2.5, 3.0, None),
    )


def test_a_job_without_level_communicates_in_the_lowest() -> None:
    assert spans(draw(make_job(level=None), 2.0, 3.0), "level-0") == [(2.5, 3.0)]


def test_computations_that_follow_each_other_are_one_with_seams_between_iterations() -> None:
    job = replace(
        make_job(),
        computing=tuple(
            ComputeInterval(name, ("h0",), number, number + start_s, number + start_s + 0.5)
            for number in range(3)
            for name, start_s in (("before", 0.0), ("during", 0.5))
        ),
    )
    drawn = draw(job, 0.5, 2.5)
    assert len(marks(drawn, "compute")) == 3
    seams = [found.get_segments()[0][0][0] for found in drawn.figure.axes[0].collections]  # type: ignore[attr-defined]
    assert seams == [1.0, 2.0]


def test_height_is_the_share_of_hosts_that_compute() -> None:
    stages = (ComputeInterval("first", ("h0",), 0, 0.0, 2.0), ComputeInterval("second", ("h1",), 0, 1.0, 3.0))
    shown = marks(draw(replace(make_job(), computing=stages), 0.0, 3.0), "compute")
    heights = [mark.get_height() for mark in shown]
    assert heights == [heights[1] / 2, heights[1], heights[1] / 2]
    assert len({mark.get_y() + mark.get_height() for mark in shown}) == 1


def test_a_pause_inside_an_iteration_is_a_gap() -> None:
    parts = (ComputeInterval("forward", ("h0",), 0, 0.0, 1.0), ComputeInterval("backward", ("h0",), 0, 2.0, 3.0))
    assert spans(draw(replace(make_job(), computing=parts), 0.0, 3.0), "compute") == [(0.0, 1.0), (2.0, 3.0)]


def test_events_in_sight_are_numbered_and_named_below_and_cross_no_label() -> None:
    events = (
        ScenarioEvent(at_s=1.0, switch="t0", state=ElementState.DOWN),
        ScenarioEvent(at_s=2.5, controller=0, state=ElementState.DOWN),
        ScenarioEvent(at_s=3.5, link=("t0", "a1"), parallel=1, state=ElementState.UP),
    )
    drawn = timeline(make_result(events=events, jobs=(make_job("a"), make_job("b"))), TimeSpan(2.0, 4.0))
    words = [text.get_text() for text in drawn.figure.texts]
    assert [found for found in words if " at " in found] == [
        "1  controller down at 2.5 s",
        "2  cable t0 to a1 (1) up at 3.5 s",
    ]
    drawn.figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in drawn.figure.texts if text.get_text() in ("a", "b")]
    (axes,) = drawn.figure.axes
    for found in axes.collections:
        if to_hex(found.get_edgecolor()[0] if len(found.get_edgecolor()) else "none") == colour("event"):
            line = axes.transData.transform_path(found.get_paths()[0]).get_extents()
            assert not any(line.y0 < box.y1 and line.y1 > box.y0 for box in labels)


def test_recovery_has_a_panel_for_every_policy_with_steps_as_high_as_utilisation() -> None:
    results = [make_result(policy, share, events=(CABLE_DOWN,)) for policy, share in (("ecmp", 0.5), ("crux", 0.9))]
    drawn = recovery(results)
    heights = [list(areas(axes)[0].get_data().values) for axes in drawn.figure.axes]
    assert heights == [[0.25, 0.5], [0.45, 0.9]]
    assert drawn.data.rows[0] == ("ecmp", 1.0, 5.0, 0.25)


def test_the_scale_of_recovery_fits_the_data_and_is_the_same_in_all_panels() -> None:
    results = [make_result(policy, 0.5, events=(CABLE_DOWN,)) for policy in ("ecmp", "crux")]
    limits = {axes.get_ylim() for axes in recovery(results).figure.axes}
    ((low, high),) = limits
    assert 0.2 <= low < 0.25
    assert 0.5 < high <= 0.55


def test_an_outage_is_shaded_and_named_in_recovery() -> None:
    drawn = recovery([make_result("crux", 0.5, events=(CABLE_DOWN, CABLE_UP))])
    (shade,) = [found for found in drawn.figure.axes[0].collections if found.get_alpha()]
    box = shade.get_paths()[0].get_extents()
    assert (box.x0, box.x1) == (3.0, 6.0)
    assert "1  cable t0 to a0 down at 3 s" in [text.get_text() for text in drawn.figure.texts]


def test_no_words_of_recovery_overlap_with_eleven_policies() -> None:
    results = [make_result(f"policy-{number}", 0.5, events=(CABLE_DOWN, CABLE_UP)) for number in range(11)]
    figure = recovery(results).figure
    figure.draw_without_rendering()
    texts = [
        *figure.texts,
        *(tick for axes in figure.axes for tick in (*axes.get_xticklabels(), *axes.get_yticklabels())),
    ]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert not [1 for n, box in enumerate(boxes) for other in boxes[n + 1 :] if box.overlaps(other)]


def test_levels_are_stacked_with_the_most_urgent_at_the_bottom() -> None:
    result = make_result(loads=make_loads(FABRIC, {(UP[0], 7): 0.25, (UP[0], 1): 0.5}))
    drawn = link_loads(result, [UP[0]], TimeSpan(2.0, 6.0), 1.0)
    bottom, top = areas(drawn.figure.axes[0])
    assert (to_hex(bottom.get_facecolor()), to_hex(top.get_facecolor())) == (colour("level-7"), colour("level-1"))
    assert {*bottom.get_data().values} == {0.25}
    assert ({*top.get_data().baseline}, {*top.get_data().values}) == ({0.25}, {0.75})  # type: ignore[misc]
    assert {(row[3], row[4]) for row in drawn.data.rows} == {(7, 0.25), (1, 0.5)}


def test_a_look_with_too_few_samples_gives_way_to_the_whole_run() -> None:
    close = link_loads(make_result(), [UP[0]], TimeSpan(5.0, 7.0), 1.0)
    too_close = link_loads(make_result(), [UP[0]], TimeSpan(5.0, 5.3), 1.0)
    assert close.figure.axes[0].get_xlim() == (5.0, 7.0)
    assert too_close.figure.axes[0].get_xlim() == (0.0, pytest.approx(10.0))


@pytest.mark.parametrize(("load", "limit"), [(0.04, 0.05), (0.3, 0.5), (0.9, 1.0)])
def test_the_top_of_a_panel_fits_the_highest_load(load: float, limit: float) -> None:
    results = [make_result(loads=make_loads(FABRIC, {(UP[0], 7): load / 2, (UP[0], 0): load / 2}))]
    assert load_limit(results, [UP[0]]) == limit


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


def test_parallel_links_are_told_apart() -> None:
    arrow = "\N{RIGHTWARDS ARROW}"
    assert link_name(FABRIC, UP[1]) == f"t0 {arrow} a0 #1"
