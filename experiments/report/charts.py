"""Bars of GPU utilisation per policy, and the load of single links by level over time."""

from collections.abc import Iterator, Sequence
from itertools import chain

from experiments.report.axis import TimeAxis
from experiments.report.numbers import percent
from experiments.report.svg import Markup, element, joined, line, picture, rectangle, text
from experiments.scenarios.results import LoadSample, RunResult

NUM_LEVELS = 8

_WIDTH = 1000.0
_LABELS = 132.0

_BAR_ROW = 44.0
_BAR = 24.0
_BARS_WIDTH = 610.0

_PANEL_GAP = 18.0
_PANEL_HEIGHT = 78.0
_PANEL_ROW = 120.0
_FEWEST_SAMPLES = 12
_LEAST_LOAD = 0.01  # acknowledgements alone stay below


def utilisation_bars(results: Sequence[RunResult]) -> Markup:
    """One bar per policy on a scale from 0 to 100 %, the ideal marked above and the fluid bound below."""
    bottom = _BAR_ROW * len(results)
    scale = [
        joined((line(x, 0, x, bottom, "rule"), text(x, bottom + 15, f"{tenth * 10} %", "tick", "middle")))
        for tenth in range(0, 11, 2)
        for x in (_LABELS + _BARS_WIDTH * tenth / 10,)
    ]
    bars = (_bar(result, _BAR_ROW * number) for number, result in enumerate(results))
    return picture(
        _WIDTH,
        bottom + 22,
        "GPU utilisation: " + ", ".join(f"{result.policy} {percent(result.gpu_utilisation)}" for result in results),
        *scale,
        *bars,
    )


def _bar(result: RunResult, row: float) -> Markup:
    top = row + (_BAR_ROW - _BAR) / 2
    middle = top + _BAR / 2
    ideal, bound = (
        _LABELS + _BARS_WIDTH * min(value, 1.0)
        for value in (result.ideal_gpu_utilisation, result.fluid_bound_gpu_utilisation)
    )
    limits = f"ideal {percent(result.ideal_gpu_utilisation)}, bound {percent(result.fluid_bound_gpu_utilisation)}"
    return joined(
        (
            text(0, top + 17, result.policy, "label"),
            rectangle(_LABELS, top, _BARS_WIDTH, _BAR, "track"),
            rectangle(_LABELS, top, _BARS_WIDTH * min(result.gpu_utilisation, 1.0), _BAR, "compute"),
            line(ideal, top - 6, ideal, middle, "ideal"),
            line(bound, middle, bound, top + _BAR + 6, "bound"),
            text(_LABELS + _BARS_WIDTH + 18, top + 17, percent(result.gpu_utilisation), "label"),
            text(_WIDTH, top + 17, limits, "note", "end"),
        )
    )


def busiest_links(results: Sequence[RunResult], count: int) -> tuple[int, ...]:
    """Links between switches that some policy loads most inside its window, at most ``count``; never idle ones."""
    fabric = results[0].fabric
    busiest = [max(loads) for loads in zip(*(mean_loads(result) for result in results), strict=True)]
    between_switches = [
        link.index
        for link in fabric.links
        if link.source in fabric.switch_index
        and link.destination in fabric.switch_index
        and busiest[link.index] >= _LEAST_LOAD
    ]
    return tuple(sorted(between_switches, key=lambda link: (-busiest[link], link))[:count])


def mean_loads(result: RunResult) -> list[float]:
    """Utilisation of every link, all levels together, on average over the samples inside the window."""
    samples = [
        sample for sample in result.loads if sample.to_s > result.window_from_s and sample.from_s < result.window_to_s
    ]
    seconds = sum(sample.to_s - sample.from_s for sample in samples)
    return [
        sum(sum(sample.utilisation[link.index]) * (sample.to_s - sample.from_s) for sample in samples) / seconds
        if seconds
        else 0.0
        for link in result.fabric.links
    ]


def link_loads(results: Sequence[RunResult], links: Sequence[int], from_s: float, to_s: float) -> Markup:
    """A panel per link and policy: its load, stacked by level, the most urgent at the bottom.

    Shows ``from_s`` to ``to_s``, or all samples of a run where these few seconds have too few of them.
    """
    width = (_WIDTH - _LABELS - _PANEL_GAP * (len(results) - 1)) / len(results)
    panels = (
        _panel(result, link, _axis(result, from_s, to_s, _LABELS + (width + _PANEL_GAP) * column, width), row)
        for row, link in enumerate(links)
        for column, result in enumerate(results)
    )
    return picture(
        _WIDTH,
        10 + _PANEL_ROW * len(links),
        "Load of the busiest links between switches by level over time",
        *(
            text(_LABELS + (width + _PANEL_GAP) * column, 12, result.policy, "label")
            for column, result in enumerate(results)
        ),
        *(_panel_label(results[0], link, row) for row, link in enumerate(links)),
        *panels,
    )


def link_name(result: RunResult, index: int) -> str:
    """The ends of a link, and its number where it has parallels."""
    link = result.fabric.links[index]
    parallel = len(result.fabric.links_between(link.source, link.destination)) > 1
    suffix = f" #{result.fabric.parallel_index(index)}" if parallel else ""
    return f"{link.source} \N{RIGHTWARDS ARROW} {link.destination}{suffix}"


def _axis(result: RunResult, from_s: float, to_s: float, left: float, width: float) -> TimeAxis:
    if sum(sample.to_s > from_s and sample.from_s < to_s for sample in result.loads) < _FEWEST_SAMPLES:
        from_s, to_s = result.loads[0].from_s, result.loads[-1].to_s
    return TimeAxis(from_s, to_s, left, width)


def _panel_label(result: RunResult, link: int, row: int) -> Markup:
    top = 24 + _PANEL_ROW * row
    rate = f"{result.fabric.links[link].rate_bps / 1e9:g} Gbit/s"
    return joined((text(0, top + 14, link_name(result, link), "label"), text(0, top + 30, rate, "note")))


def _panel(result: RunResult, link: int, axis: TimeAxis, row: int) -> Markup:
    top = 24 + _PANEL_ROW * row
    bottom = top + _PANEL_HEIGHT
    samples = [sample for sample in result.loads if axis.shows(sample.from_s, sample.to_s)]
    return joined(
        (
            rectangle(axis.left, top, axis.width, _PANEL_HEIGHT, "track"),
            *_areas(samples, link, axis, bottom),
            axis.draw(top, bottom, max(2, round(axis.width / 80))),
            line(axis.left, top, axis.left + axis.width, top, "capacity"),
        )
    )


def _areas(samples: Sequence[LoadSample], link: int, axis: TimeAxis, bottom: float) -> Iterator[Markup]:
    """An area per level that the link has carried, each on top of those that are served before it."""
    base = [0.0] * len(samples)
    for level in reversed(range(NUM_LEVELS)):
        loads = [sample.utilisation[link][level] for sample in samples]
        if any(loads):
            upper = [below + load for below, load in zip(base, loads, strict=True)]
            outline = chain(_steps(samples, upper, axis, bottom), reversed(list(_steps(samples, base, axis, bottom))))
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
            yield element("polygon", points=points, class_=f"level-{level}")
            base = upper


def _steps(
    samples: Sequence[LoadSample], heights: Sequence[float], axis: TimeAxis, bottom: float
) -> Iterator[tuple[float, float]]:
    for sample, height in zip(samples, heights, strict=True):
        y = bottom - _PANEL_HEIGHT * min(height, 1.0)
        yield axis.x(sample.from_s), y
        yield axis.x(sample.to_s), y
