"""The fabric in layers: cables in the colour of the GPU intensity that they carry, and as thick as their load."""

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Outline

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    Tooltips,
    Value,
    add_axes,
    add_legend,
    figure_settings,
    legend_height,
    new_figure,
    shortened,
    slug,
)
from experiments.report.link_names import link_name
from experiments.report.numbers import percent, quantity
from experiments.report.over_time import mean_loads
from experiments.report.style import NUM_HEATS, WIDTH_PT, colour
from experiments.scenarios.results import RunResult
from topologies.fabric import Fabric
from workloads.events import ElementState

_WIDTH = WIDTH_PT - 2 * MARGIN_PT
_LAYER = 74.0
_NODE_HEIGHT = 13.0
_WIDEST_NODE = 30.0
_NAME_PT = 6.5
_LETTER = 0.62  # of the font's size
_PARALLEL_GAP = 3.0
_THICKEST = 4.0
_THINNEST = 0.8
_SAG = 25.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Centre of a node, and its distance from its neighbours in the layer."""

    x: float
    y: float
    spacing: float

    @property
    def width(self) -> float:
        return min(_WIDEST_NODE, self.spacing * 0.85)


@dataclass(frozen=True, slots=True)
class _Line:
    """A cable between switches, or all cables of a host together.

    ``shift`` is its place beside its parallels. ``heat`` is the class of the most intense job on it, None where it
    carries nothing. ``has_failed`` says that it was down in the run.
    """

    ends: tuple[str, str]
    name: str
    jobs: tuple[str, ...]
    shift: float
    load: float
    heat: int | None
    has_failed: bool


@dataclass(frozen=True, slots=True)
class HeatScale:
    """Classes of equal ratio from intensity ``least`` to ``most``; a class means the same under every policy."""

    least: float
    most: float

    @classmethod
    def of(cls, results: Sequence[RunResult]) -> Self:
        """Return the scale that holds all jobs of all results."""
        intensities = [job.intensity for result in results for job in result.jobs if job.intensity]
        return cls(min(intensities, default=1.0), max(intensities, default=1.0))

    def heat(self, intensity: float | None) -> int:
        """Return a class from 0 to ``NUM_HEATS - 1``, the most intense; 0 for no intensity."""
        if not intensity:
            return 0
        if self.most <= self.least * (1 + 1e-9):
            return NUM_HEATS - 1
        return round(math.log(intensity / self.least) / math.log(self.most / self.least) * (NUM_HEATS - 1))


def topology(result: RunResult, scale: HeatScale) -> ReportFigure:
    """Draw aggregation above ToRs above hosts, or as many layers of switches as there are."""
    layers = _layers(result.fabric)
    places = _places(layers)
    lines = list(_lines(result, scale))
    handles = _legend(result, scale, any(line.has_failed for line in lines) or bool(_failed_nodes(result)))
    height = _LAYER * (len(layers) - 1) + _NODE_HEIGHT + 4
    tooltips = Tooltips()
    with figure_settings():
        figure = new_figure(MARGIN_PT + height + 8 + legend_height(len(handles), 1))
        axes = add_axes(figure, MARGIN_PT, height)
        axes.set_axis_off()
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(height, 0)
        for line in sorted(lines, key=lambda line: -1 if line.heat is None else line.heat):
            _draw_line(axes, line, places, tooltips)
        failed = _failed_nodes(result)
        for node, place in places.items():
            _draw_node(axes, node, place, node in result.fabric.host_index, node in failed, tooltips)
        add_legend(figure, MARGIN_PT + height + 8, handles, 1)
    rows: list[tuple[Value, ...]] = [(*line.ends, line.name, line.load, " ".join(line.jobs)) for line in lines]
    data = FigureData(("end", "other_end", "cable", "mean_load", "jobs"), tuple(rows))
    words = f"The fabric and what its links carry under {result.policy}"
    name = f"{slug(result.scenario)}-topology-{slug(result.policy)}"
    return ReportFigure(name, result.policy, words, figure, data, tooltips.words)


def _layers(fabric: Fabric) -> list[list[str]]:
    """Return nodes by their distance from the nearest host, the farthest first, the hosts themselves last."""
    distance = dict.fromkeys(fabric.hosts, 0)
    queue = deque(fabric.hosts)
    while queue:
        node = queue.popleft()
        for link in fabric.links_from[node]:
            if link.destination not in distance:
                distance[link.destination] = distance[node] + 1
                queue.append(link.destination)
    layers: list[list[str]] = [[] for _ in range(max(distance.values()) + 1)]
    for node in (*fabric.hosts, *fabric.switches):
        layers[distance[node]].append(node)
    return layers[::-1]


def _places(layers: list[list[str]]) -> dict[str, _Place]:
    places = {}
    for number, nodes in enumerate(layers):
        spacing = _WIDTH / len(nodes)
        for position, node in enumerate(nodes):
            places[node] = _Place(spacing * (position + 0.5), 2 + _NODE_HEIGHT / 2 + _LAYER * number, spacing)
    return places


def _lines(result: RunResult, scale: HeatScale) -> Iterator[_Line]:
    fabric, loads, jobs_on = result.fabric, mean_loads(result), _jobs_on_links(result)
    heat_of = {job.name: scale.heat(job.intensity) for job in result.jobs}
    failed = _failed_cables(result)
    bundles: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, cable in enumerate(fabric.cables):
        bundles[cable.ends].append(number)
    for ends, cables in bundles.items():
        at_host = ends[0] in fabric.host_index or ends[1] in fabric.host_index
        drawn = [cables] if at_host else [[cable] for cable in cables]
        for position, together in enumerate(drawn):
            jobs = tuple(
                sorted({job for cable in together for link in _links_of(cable) for job in jobs_on.get(link, ())})
            )
            yield _Line(
                ends,
                f"{ends[0]}, {ends[1]}" if at_host else link_name(result.fabric, 2 * together[0]),
                jobs,
                (position - (len(drawn) - 1) / 2) * _PARALLEL_GAP,
                max(sum(loads[2 * cable + way] for cable in together) / len(together) for way in (0, 1)),
                max((heat_of[job] for job in jobs), default=None),
                any(cable in failed for cable in together),
            )


def _links_of(cable: int) -> tuple[int, int]:
    return 2 * cable, 2 * cable + 1


def _jobs_on_links(result: RunResult) -> Mapping[int, set[str]]:
    jobs: defaultdict[int, set[str]] = defaultdict(set)
    for flow in result.flows:
        for link in flow.path:
            jobs[link].add(flow.job)
    return jobs


def _failed_cables(result: RunResult) -> set[int]:
    """Return the cables that went down by an event of their own."""
    return {
        result.fabric.links_between(*event.link)[event.parallel] // 2
        for event in result.events
        if event.link is not None and event.state is ElementState.DOWN
    }


def _failed_nodes(result: RunResult) -> set[str]:
    down = [event for event in result.events if event.state is ElementState.DOWN]
    return {node for event in down for node in (event.switch, event.host) if node is not None}


def _draw_line(axes: Axes, line: _Line, places: Mapping[str, _Place], tooltips: Tooltips) -> None:
    first, second = (places[end] for end in line.ends)
    if first.y == second.y:
        # Between neighbours a straight line; farther apart it sags, so as not to run through the nodes between.
        y, apart = first.y + line.shift, abs(second.x - first.x)
        sag = min((apart / first.spacing - 1) * _SAG, _LAYER * 0.8)
        corners = [(first.x, y), ((first.x + second.x) / 2, y + sag), (second.x, y)]
        outline = Outline(corners, [Outline.MOVETO, Outline.CURVE3, Outline.CURVE3])
    else:
        outline = Outline([(first.x + line.shift, first.y), (second.x + line.shift, second.y)])
    shade = colour("hair" if line.heat is None else f"heat-{line.heat}")
    width = _THINNEST if line.heat is None else _THINNEST + (_THICKEST - _THINNEST) * min(line.load, 1.0)
    mark = axes.add_artist(PathPatch(outline, fill=False, edgecolor=shade, linewidth=width, capstyle="round", zorder=1))
    words = f"{line.name}: {', '.join(line.jobs) or 'carries nothing'}, {percent(line.load)} loaded"
    tooltips.add(mark, f"{words}, failed during the run" if line.has_failed else words)
    if line.has_failed:
        # A gap between the marks and the cable, whatever its colour.
        for shade, width, dashes in (("sheet", 3.4, "solid"), ("event", 1.6, (0, (3, 2)))):
            axes.add_artist(PathPatch(outline, fill=False, edgecolor=colour(shade), linewidth=width, linestyle=dashes))


def _draw_node(axes: Axes, name: str, place: _Place, is_host: bool, has_failed: bool, tooltips: Tooltips) -> None:
    box = FancyBboxPatch(
        (place.x - place.width / 2, place.y - _NODE_HEIGHT / 2),
        place.width,
        _NODE_HEIGHT,
        boxstyle="round,pad=0,rounding_size=2.5",
        facecolor=colour("track" if is_host else "sheet"),
        edgecolor=colour("event" if has_failed else "quiet"),
        linewidth=1.8 if has_failed else 0.8,
        zorder=2,
    )
    tooltips.add(axes.add_artist(box), f"{name}, failed during the run" if has_failed else name)
    if len(name) * _NAME_PT * _LETTER <= place.width:
        axes.text(place.x, place.y, name, ha="center", va="center_baseline", fontsize=_NAME_PT, zorder=3)


def _legend(result: RunResult, scale: HeatScale, has_failures: bool) -> list[Artist]:
    """Return an entry for the jobs of each intensity, and one for what failed."""
    names: dict[tuple[int, str], list[str]] = {}
    for job in sorted(result.jobs, key=lambda job: -(job.intensity or 0)):
        names.setdefault((scale.heat(job.intensity), quantity(job.intensity)), []).append(job.name)
    handles: list[Artist] = [
        Line2D([], [], color=colour(f"heat-{heat}"), linewidth=3, label=shortened(f"{_listed(jobs)}: {intensity}", 48))
        for (heat, intensity), jobs in names.items()
    ]
    if has_failures:
        words = "failed during the run"
        handles.append(Line2D([], [], color=colour("event"), linewidth=1.4, linestyle=(0, (3, 2)), label=words))
    return handles


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]}, \N{HORIZONTAL ELLIPSIS} {names[-1]}"
