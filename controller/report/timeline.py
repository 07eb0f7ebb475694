"""What every job did over a few seconds: a lane for computation, a lane for communication."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controller.report.axis import TimeAxis
from controller.report.numbers import quantity
from controller.report.svg import Markup, element, joined, line, picture, rectangle, text
from controller.run.results import JobResult, RunResult
from workloads.replay import ComputeInterval

_WIDTH = 1000.0
_LABELS = 132.0
_TOP = 6.0
_ROW = 46.0
_COMPUTE = 18.0
_COMMUNICATION = 9.0
_LANE_GAP = 3.0
_TICKS = 8


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Computation without a pause inside one iteration, by a ``share`` of the job's hosts."""

    iteration: int
    share: float
    start_s: float
    end_s: float


def timeline(result: RunResult, from_s: float, to_s: float) -> Markup:
    """Two lanes per job between two times; the gaps in the upper one are GPUs that wait."""
    axis = TimeAxis(from_s, to_s, _LABELS, _WIDTH - _LABELS - 4)
    bottom = _TOP + _ROW * len(result.jobs)
    rows = (_row(job, axis, _TOP + _ROW * number) for number, job in enumerate(result.jobs))
    return picture(
        _WIDTH,
        bottom + 22,
        f"Computation and communication of every job under {result.policy}, {from_s:.2f} to {to_s:.2f} s",
        axis.draw(_TOP, bottom, _TICKS),
        *rows,
    )


def _row(job: JobResult, axis: TimeAxis, top: float) -> Markup:
    upper = top + (_ROW - _COMPUTE - _LANE_GAP - _COMMUNICATION) / 2
    lower = upper + _COMPUTE + _LANE_GAP
    level = "no level" if job.level is None else f"level {job.level}"
    return joined(
        (
            text(0, upper + 13, _shortened(job.name), "label"),
            text(0, upper + 28, f"{quantity(job.gpus)} GPUs, {level}", "note"),
            rectangle(axis.left, upper, axis.width, _COMPUTE, "track"),
            rectangle(axis.left, lower, axis.width, _COMMUNICATION, "track"),
            *_computing(job, axis, upper),
            *_communicating(job, axis, lower),
        )
    )


def _computing(job: JobResult, axis: TimeAxis, top: float) -> Iterator[Markup]:
    for stretch in _stretches(job.computing):
        if axis.shows(stretch.start_s, stretch.end_s):
            x, end = axis.x(stretch.start_s), axis.x(stretch.end_s)
            tip = f"{job.name}, iteration {stretch.iteration}: computes {_span(stretch.start_s, stretch.end_s)}"
            height = _COMPUTE * stretch.share
            yield rectangle(x, top + _COMPUTE - height, end - x, height, "compute", element("title", tip))
    for start_s in _iteration_starts(job.computing):
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


def _stretches(intervals: Sequence[ComputeInterval]) -> Iterator[_Stretch]:
    """Computations joined where one begins as another ends, or stacked by hosts where some wait for others."""
    num_hosts = len({host for interval in intervals for host in interval.hosts})
    for iteration in dict.fromkeys(interval.iteration for interval in intervals):
        parts = [interval for interval in intervals if interval.iteration == iteration]
        changes = sorted({time_s for part in parts for time_s in (part.start_s, part.end_s)})
        open_stretch: _Stretch | None = None
        for start_s, end_s in zip(changes, changes[1:], strict=False):
            hosts = {host for part in parts if part.start_s <= start_s and end_s <= part.end_s for host in part.hosts}
            share = len(hosts) / num_hosts
            if open_stretch is not None and share == open_stretch.share:
                open_stretch = _Stretch(iteration, share, open_stretch.start_s, end_s)
                continue
            if open_stretch is not None and open_stretch.share:
                yield open_stretch
            open_stretch = _Stretch(iteration, share, start_s, end_s)
        if open_stretch is not None and open_stretch.share:
            yield open_stretch


def _iteration_starts(intervals: Sequence[ComputeInterval]) -> Iterator[float]:
    for iteration in dict.fromkeys(interval.iteration for interval in intervals):
        yield min(interval.start_s for interval in intervals if interval.iteration == iteration)


def _span(start_s: float, end_s: float) -> str:
    return f"{start_s:.3f} to {end_s:.3f} s"


def _shortened(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}\N{HORIZONTAL ELLIPSIS}"
