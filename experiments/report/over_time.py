"""Figures of runs over time: what each job does, the load of links by level, and utilisation through failures."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle, StepPatch

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    Tooltips,
    Value,
    add_axes,
    add_label,
    add_legend,
    figure_settings,
    legend_height,
    new_figure,
    slug,
)
from experiments.report.link_names import LEAST_LOAD, link_name
from experiments.report.numbers import count, percent
from experiments.report.style import NUM_LEVELS, colour, series_colour
from experiments.report.time_axis import TimeSpan, add_event_key, event_key_height, mark_events, show_time
from experiments.scenarios.results import JobResult, LoadSample, RunResult
from workloads.replay import ComputeInterval

_BASELINE = 9.0

_JOB_ROW = 39.0
_COMPUTE = (12.0, 25.0)
_COMMUNICATE = (27.0, 33.0)

_PANEL = 36.0
_PANEL_ROW = 57.0
_AXIS = 32.0  # room for the ticks of the vertical axis
_EVENT_NUMBERS = 8.0
_FEWEST_SAMPLES = 12
_LOAD_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def timeline(result: RunResult, span: TimeSpan) -> ReportFigure:
    """Draw a lane of computation and a lane of communication for every job; gaps are GPUs that wait."""
    handles = _activity_legend(result)
    above = MARGIN_PT + legend_height(len(handles), 4) + (_EVENT_NUMBERS if result.events else 0)
    bottom = above + _JOB_ROW * len(result.jobs)
    tooltips, rows = Tooltips(), list[tuple[Value, ...]]()
    with figure_settings():
        figure = new_figure(bottom + event_key_height(result.events, span) + 4)
        add_legend(figure, MARGIN_PT, handles, 4)
        axes = add_axes(figure, above, _JOB_ROW * len(result.jobs))
        axes.set_facecolor("none")
        show_time(axes, span, labelled=True)
        axes.set_ylim(_JOB_ROW * len(result.jobs), 0)
        axes.set_yticks([])
        for place, job in enumerate(result.jobs):
            top = _JOB_ROW * place
            level = "no level" if job.level is None else f"level {job.level}"
            add_label(figure, above + top + _BASELINE, job.name, f"{count(job.gpus)} GPUs, {level}")
            for from_y, to_y in (_COMPUTE, _COMMUNICATE):
                axes.axhspan(top + from_y, top + to_y, color=colour("track"), linewidth=0)
            rows += _draw_computing(axes, job, span, top, tooltips)
            rows += _draw_communicating(axes, job, span, top, tooltips)
        bands = [
            (_JOB_ROW * place + _COMPUTE[0], _JOB_ROW * place + _COMMUNICATE[1]) for place in range(len(result.jobs))
        ]
        mark_events(axes, result.events, span, bands)
        add_event_key(figure, result.events, span, MARGIN_PT, above - 1, bottom)
    data = FigureData(("job", "activity", "name", "iteration", "from_s", "to_s", "share_of_hosts"), tuple(rows))
    words = f"Computation and communication of every job under {result.policy}, {span.from_s:.2f} to {span.to_s:.2f} s"
    name = f"{slug(result.scenario)}-timeline-{slug(result.policy)}"
    return ReportFigure(name, result.policy, words, figure, data, tooltips.words)


def recovery(results: Sequence[RunResult]) -> ReportFigure:
    """Draw GPU utilisation over a run with failures, a panel for each policy on one scale."""
    span = TimeSpan(min(result.window_from_s for result in results), max(result.window_to_s for result in results))
    events = results[0].events
    shares = [step.gpu_utilisation for result in results for step in result.steps if step.gpu_utilisation is not None]
    # The scale fits the data: on one from 0 to 100 % a failure is hard to see.
    low, high = floor(min(shares, default=0.0) * 20 - 0.2) / 20, ceil(max(shares, default=1.0) * 20 + 0.2) / 20
    above = MARGIN_PT + (_EVENT_NUMBERS if events else 0)
    bottom = above + _PANEL_ROW * (len(results) - 1) + _BASELINE + 4 + _PANEL
    with figure_settings():
        figure = new_figure(bottom + event_key_height(events, span) + 4)
        for place, result in enumerate(results):
            top = above + _PANEL_ROW * place
            add_label(figure, top + _BASELINE, result.policy, f"mean {percent(result.gpu_utilisation)}")
            axes = add_axes(figure, top + _BASELINE + 4, _PANEL, _AXIS)
            show_time(axes, span, labelled=place + 1 == len(results))
            _show_shares(axes, low, high)
            edges = [*(step.from_s for step in result.steps), *(step.to_s for step in result.steps[-1:])]
            values = [np.nan if step.gpu_utilisation is None else step.gpu_utilisation for step in result.steps]
            if values:
                axes.stairs(values, edges, baseline=None, color=series_colour(place), linewidth=1.6, zorder=5)
            mark_events(axes, events, span, [(low, high)])
        add_event_key(figure, events, span, _AXIS, above, bottom)
    lowest = (
        f"{result.policy} {percent(min(step.gpu_utilisation or 0.0 for step in result.steps))}"
        for result in results
        if result.steps
    )
    data = FigureData(
        ("policy", "from_s", "to_s", "gpu_utilisation"),
        tuple(
            (result.policy, step.from_s, step.to_s, step.gpu_utilisation) for result in results for step in result.steps
        ),
    )
    description = "GPU utilisation over time; at the lowest: " + ", ".join(lowest)
    return ReportFigure(f"{slug(results[0].scenario)}-recovery", "GPU utilisation over time", description, figure, data)


def link_loads(result: RunResult, links: Sequence[int], span: TimeSpan, limit: float) -> ReportFigure:
    """Draw the load of links under one policy, stacked by level, the most urgent at the bottom.

    The figure shows ``span``, or all samples of the run where too few of them lie there. ``limit`` is the load at the
    top of each panel; see ``load_limit``.
    """
    if sum(span.shows(sample.from_s, sample.to_s) for sample in result.loads) < _FEWEST_SAMPLES:
        span = TimeSpan(result.loads[0].from_s, result.loads[-1].to_s)
    samples = [sample for sample in result.loads if span.shows(sample.from_s, sample.to_s)]
    levels = [
        level for level in reversed(range(NUM_LEVELS)) if any(_levels(samples, link)[level].any() for link in links)
    ]
    handles: list[Artist] = [Patch(color=colour(f"level-{level}"), label=f"level {level}") for level in levels]
    above = MARGIN_PT + legend_height(len(handles), 4)
    edges = [*(sample.from_s for sample in samples), samples[-1].to_s]
    rows: list[tuple[Value, ...]] = []
    with figure_settings():
        figure = new_figure(above + _PANEL_ROW * len(links) + 14)
        add_legend(figure, MARGIN_PT, handles, 4)
        for place, link in enumerate(links):
            top = above + _PANEL_ROW * place
            rate = f"{result.fabric.links[link].rate_bps / 1e9:g} Gbit/s"
            add_label(figure, top + _BASELINE, link_name(result.fabric, link), rate)
            axes = add_axes(figure, top + _BASELINE + 4, _PANEL, _AXIS)
            show_time(axes, span, labelled=place + 1 == len(links))
            _show_shares(axes, 0.0, limit)
            loads = _levels(samples, link)
            base: Any = np.zeros(len(samples))  # an array, for which matplotlib's types have no place
            for level in levels:
                shade = colour(f"level-{level}")
                top_loads = base + loads[level]
                axes.add_artist(StepPatch(top_loads, edges, baseline=base, fill=True, color=shade, linewidth=0))
                base = top_loads
                rows += [
                    (link_name(result.fabric, link), sample.from_s, sample.to_s, level, float(load))
                    for sample, load in zip(samples, loads[level], strict=True)
                ]
    data = FigureData(("link", "from_s", "to_s", "level", "load"), tuple(rows))
    words = f"Load of the busiest links between switches by level over time under {result.policy}"
    name = f"{slug(result.scenario)}-load-{slug(result.policy)}"
    return ReportFigure(name, result.policy, words, figure, data)


def _show_shares(axes: Axes, low: float, high: float) -> None:
    """Give axes a vertical axis from one share to another, whose labels stay beside the axes."""
    axes.set_ylim(low, high)
    axes.set_yticks([low, high], [percent(low, 0), percent(high, 0)])
    lower, upper = axes.get_yticklabels()
    lower.set_verticalalignment("bottom")
    upper.set_verticalalignment("top")


def load_limit(results: Sequence[RunResult], links: Sequence[int]) -> float:
    """Return a round load that no link exceeds under any policy: 1.0, or less where all loads are low."""
    highest = max(
        (sum(sample.utilisation[link]) for result in results for sample in result.loads for link in links), default=1.0
    )
    return next((limit for limit in _LOAD_LIMITS if highest <= limit), 1.0)


def busiest_links(results: Sequence[RunResult], most: int) -> tuple[int, ...]:
    """Return at most so many links between switches, those first that some policy loads most; never idle ones."""
    fabric = results[0].fabric
    busiest = [max(loads) for loads in zip(*(mean_loads(result) for result in results), strict=True)]
    between_switches = [
        link.index
        for link in fabric.links
        if link.source in fabric.switch_index
        and link.destination in fabric.switch_index
        and busiest[link.index] >= LEAST_LOAD
    ]
    return tuple(sorted(between_switches, key=lambda link: (-busiest[link], link))[:most])


def mean_loads(result: RunResult) -> list[float]:
    """Return the mean utilisation of every link inside the measured window, all levels together."""
    samples = [
        sample for sample in result.loads if sample.to_s > result.window_from_s and sample.from_s < result.window_to_s
    ]
    lengths_s = [sample.to_s - sample.from_s for sample in samples]
    if not sum(lengths_s):
        return [0.0] * len(result.fabric.links)
    means = np.average([sample.utilisation for sample in samples], axis=0, weights=lengths_s).sum(axis=1)
    return [float(mean) for mean in means[: len(result.fabric.links)]]


def _levels(samples: Sequence[LoadSample], link: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Return the load of a link by level and sample."""
    return np.array([sample.utilisation[link] for sample in samples]).T


def _activity_legend(result: RunResult) -> list[Artist]:
    levels = sorted({job.level or 0 for job in result.jobs}, reverse=True)
    handles: list[Artist] = [Patch(color=colour("compute"), label="computation")]
    return handles + [Patch(color=colour(f"level-{level}"), label=f"level {level}") for level in levels]


def _draw_computing(
    axes: Axes, job: JobResult, span: TimeSpan, row: float, tooltips: Tooltips
) -> Iterator[tuple[Value, ...]]:
    """Draw computation as high as the share of GPUs that compute, with a seam where an iteration begins."""
    num_hosts = len({host for interval in job.computing for host in interval.hosts})
    top, bottom = row + _COMPUTE[0], row + _COMPUTE[1]
    for intervals in _iterations_shown(job.computing, span):
        number = intervals[0].iteration
        for share, start_s, end_s in _stretches(intervals, num_hosts):
            if share and span.shows(start_s, end_s):
                from_s, to_s = span.clipped(start_s), span.clipped(end_s)
                height = (bottom - top) * share
                mark = Rectangle(
                    (from_s, bottom - height), to_s - from_s, height, facecolor=colour("compute"), zorder=2
                )
                words = f"{job.name}, iteration {number}: computes {start_s:.3f} to {end_s:.3f} s"
                tooltips.add(axes.add_artist(mark), words)
                yield job.name, "compute", "", number, start_s, end_s, share
        begins_s = min(interval.start_s for interval in intervals)
        if span.from_s < begins_s < span.to_s:
            axes.vlines(begins_s, top, bottom, colors=colour("sheet"), linewidth=1.3, zorder=2.5)


def _draw_communicating(
    axes: Axes, job: JobResult, span: TimeSpan, row: float, tooltips: Tooltips
) -> Iterator[tuple[Value, ...]]:
    """Draw communication in the colour of the job's level."""
    top, bottom = row + _COMMUNICATE[0], row + _COMMUNICATE[1]
    for interval in job.communicating:
        if span.shows(interval.start_s, interval.end_s):
            from_s, to_s = span.clipped(interval.start_s), span.clipped(interval.end_s)
            shade = colour(f"level-{job.level or 0}")
            mark = Rectangle((from_s, top), to_s - from_s, bottom - top, facecolor=shade, zorder=2)
            times = f"{interval.start_s:.3f} to {interval.end_s:.3f} s"
            words = f"{job.name}, iteration {interval.iteration}: {interval.group} under way {times}"
            tooltips.add(axes.add_artist(mark), words)
            yield job.name, "communicate", interval.group, interval.iteration, interval.start_s, interval.end_s, None


def _iterations_shown(intervals: Sequence[ComputeInterval], span: TimeSpan) -> list[list[ComputeInterval]]:
    """Return whole iterations of which some part lies inside the span."""
    by_iteration: defaultdict[int, list[ComputeInterval]] = defaultdict(list)
    for interval in intervals:
        by_iteration[interval.iteration].append(interval)
    return [whole for whole in by_iteration.values() if any(span.shows(some.start_s, some.end_s) for some in whole)]


def _stretches(intervals: Sequence[ComputeInterval], num_hosts: int) -> Iterator[tuple[float, float, float]]:
    """Return the share of GPUs that compute, as long as it stays the same: share, start and end."""
    moments = sorted({time_s for interval in intervals for time_s in (interval.start_s, interval.end_s)})
    share, begin_s, last_s = 0.0, moments[0], moments[0]
    for start_s, end_s in pairwise(moments):
        busy: defaultdict[str, float] = defaultdict(float)
        for some in intervals:
            if some.start_s <= start_s and end_s <= some.end_s:
                for host in some.hosts:
                    busy[host] += some.share
        now = sum(min(each, 1.0) for each in busy.values()) / num_hosts
        if now != share:
            yield share, begin_s, last_s
            share, begin_s = now, start_s
        last_s = end_s
    yield share, begin_s, last_s
