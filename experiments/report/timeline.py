"""What every job did over a few seconds: a lane for computation, a lane for communication."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from experiments.report.axis import TimeAxis
from experiments.report.event_marks import EVENT_ROW, event_marks
from experiments.report.numbers import count
from experiments.report.svg import Markup, element, joined, line, picture, rectangle, text
from experiments.scenarios.results import JobResult, RunResult
from workloads.replay import ComputeInterval

_WIDTH = 1000.0
_LABELS = 132.0
_TOP = 6.0
_ROW = 46.0
_COMPUTE = 18.0
_COMMUNICATION = 9.0
_LANE_GAP = 3.0
_TICKS = 8
_AXIS = 22.0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time in which the same ``share`` of a job's hosts computes."""

    share: float
    start_s: float
    end_s: float


def timeline(result: RunResult, from_s: float, to_s: float) -> Markup:
    """Two lanes per job between two times, and what failed or came back; gaps in the upper lanes are GPUs that wait."""
    axis = TimeAxis(from_s, to_s, _LABELS, _WIDTH - _LABELS - 4)
    bottom = _TOP + _ROW * len(result.jobs)
    rows = (_row(job, axis, _TOP + _ROW * number) for number, job in enumerate(result.jobs))
    events = [event for event in result.events if from_s <= event.at_s <= to_s]
    return picture(
        _WIDTH,
        bottom + _AXIS + EVENT_ROW * len(events),
        f"Computation and communication of every job under {result.policy}, {from_s:.2f} to {to_s:.2f} s",
        axis.draw(_TOP, bottom, _TICKS),
        *rows,
        event_marks(events, axis, _TOP, bottom + _AXIS),
    )


def _row(job: JobResult, axis: TimeAxis, top: float) -> Markup:
    upper = top + (_ROW - _COMPUTE - _LANE_GAP - _COMMUNICATION) / 2
    lower = upper + _COMPUTE + _LANE_GAP
    level = "no level" if job.level is None else f"level {job.level}"
    return joined(
        (
            text(0, upper + 13, _shortened(job.name), "label"),
            text(0, upper + 28, f"{count(job.gpus)} GPUs, {level}", "note"),
            rectangle(axis.left, upper, axis.width, _COMPUTE, "track"),
            rectangle(axis.left, lower, axis.width, _COMMUNICATION, "track"),
            *_computing(job, axis, upper),
            *_communicating(job, axis, lower),
        )
    )


def _computing(job: JobResult, axis: TimeAxis, top: float) -> Iterator[Markup]:
    num_hosts = len({host for interval in job.computing for host in interval.hosts})
    iterations = _iterations_shown(job.computing, axis)
    for intervals in iterations:
        for stretch in _stretches(intervals, num_hosts):
            if stretch.share and axis.shows(stretch.start_s, stretch.end_s):
                x, end = axis.x(stretch.start_s), axis.x(stretch.end_s)
                height = _COMPUTE * stretch.share
                tip = (
                    f"{job.name}, iteration {intervals[0].iteration}: computes {_span(stretch.start_s, stretch.end_s)}"
                )
                yield rectangle(x, top + _COMPUTE - height, end - x, height, "compute", element("title", tip))
    for intervals in iterations:
        start_s = min(interval.start_s for interval in intervals)
        if axis.from_s < start_s < axis.to_s:
            yield line(axis.x(start_s), top, axis.x(start_s), top + _COMPUTE, "seam")


def _communicating(job: JobResult, axis: TimeAxis, top: float) -> Iterator[Markup]:
    for interval in job.communicating:
        if axis.shows(interval.start_s, interval.end_s):
            x, end = axis.x(interval.start_s), axis.x(interval.end_s)
            tip = (
                f"{job.name}, iteration {interval.iteration}: {interval.group} under way "
                f"{_span(interval.start_s, interval.end_s)}"
            )
            yield rectangle(x, top, end - x, _COMMUNICATION, f"level-{job.level or 0}", element("title", tip))


def _iterations_shown(intervals: Sequence[ComputeInterval], axis: TimeAxis) -> list[list[ComputeInterval]]:
    """Whole iterations of which at least a part can be seen."""
    shown: dict[int, list[ComputeInterval]] = {
        interval.iteration: [] for interval in intervals if axis.shows(interval.start_s, interval.end_s)
    }
    for interval in intervals:
        if interval.iteration in shown:
            shown[interval.iteration].append(interval)
    return list(shown.values())


def _stretches(intervals: Sequence[ComputeInterval], num_hosts: int) -> Iterator[_Stretch]:
    """Computations of an iteration, joined where one ends as another begins, stacked where only some hosts compute."""
    moments = sorted({time_s for interval in intervals for time_s in (interval.start_s, interval.end_s)})
    current = _Stretch(0.0, moments[0], moments[0])
    for start_s, end_s in pairwise(moments):
        hosts = {host for some in intervals if some.start_s <= start_s and end_s <= some.end_s for host in some.hosts}
        share = len(hosts) / num_hosts
        if share != current.share:
            yield current
            current = _Stretch(share, start_s, start_s)
        current = replace(current, end_s=end_s)
    yield current


def _span(start_s: float, end_s: float) -> str:
    return f"{start_s:.3f} to {end_s:.3f} s"


def _shortened(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}\N{HORIZONTAL ELLIPSIS}"
