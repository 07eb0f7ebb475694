import re
from dataclasses import replace

import pytest

from experiments.report.axis import TimeAxis, close_look
from tests.experiments.report.builders import make_job, make_result
from workloads.events import ElementState, ScenarioEvent

AXIS = TimeAxis(from_s=2.0, to_s=6.0, left=100.0, width=400.0)


@pytest.mark.parametrize(("time_s", "x"), [(2.0, 100.0), (4.0, 300.0), (6.0, 500.0), (0.0, 100.0), (9.0, 500.0)])
def test_times_lie_between_the_edges(time_s: float, x: float) -> None:
    assert AXIS.x(time_s) == x


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (AXIS, ["2 s", "3 s", "4 s", "5 s", "6 s"]),
        (TimeAxis(0.13, 0.58, 0.0, 100.0), ["0.2 s", "0.3 s", "0.4 s", "0.5 s"]),
        (TimeAxis(0.0, 90.0, 0.0, 100.0), ["0 s", "20 s", "40 s", "60 s", "80 s"]),
    ],
)
def test_ticks_stand_at_round_times_inside_the_axis(axis: TimeAxis, labels: list[str]) -> None:
    assert re.findall(r">([\d.]+ s)<", axis.draw(0.0, 10.0, num_ticks=5)) == labels


def test_a_close_look_is_a_few_iterations_of_the_slowest_job_in_the_middle_of_the_window() -> None:
    slow = make_result(jobs=(make_job("a", 0.5), make_job("b", 1.6)))
    assert close_look([make_result(), slow]) == pytest.approx((5 - 1.75 * 1.6, 5 + 1.75 * 1.6))


def test_a_close_look_stays_inside_what_all_policies_have_measured() -> None:
    short = replace(make_result(jobs=(make_job("a", 4.0),)), window_to_s=4.0)
    assert close_look([make_result(), short]) == (1.0, 4.0)


@pytest.mark.parametrize(("at_s", "middle_s"), [(6.0, 6.0), (1.5, 2.75), (0.5, 5.0)])
def test_a_close_look_is_about_the_first_event_in_the_window(at_s: float, middle_s: float) -> None:
    events = tuple(ScenarioEvent(at_s=time_s, switch="t0", state=ElementState.DOWN) for time_s in (at_s, 9.5))
    assert close_look([make_result(events=events)]) == pytest.approx((middle_s - 1.75, middle_s + 1.75))


def test_windows_that_do_not_overlap_are_shown_from_the_start_of_the_run() -> None:
    late = replace(make_result(), window_from_s=9.5, window_to_s=9.9)
    from_s, to_s = close_look([make_result(), late])
    assert 0 <= from_s < to_s <= 10.0
