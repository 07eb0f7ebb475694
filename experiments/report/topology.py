"""The fabric in layers, its cables coloured by the GPU intensity of what they carry and as thick as their load."""

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from experiments.report.charts import link_name, mean_loads
from experiments.report.numbers import percent
from experiments.report.svg import Markup, element, joined, picture, rectangle, text
from experiments.scenarios.results import RunResult
from topologies.fabric import Fabric

NUM_HEATS = 5
"""Classes of GPU intensity that colours tell apart."""

_WIDTH = 1000.0
_MARGIN = 16.0
_LAYER = 150.0
_NODE_HEIGHT = 22.0
_WIDEST_NODE = 46.0
_NARROWEST_NAMED = 22.0
_PARALLEL_GAP = 4.0
_THICKEST = 5.0
_SAG = 50.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Centre of a node, and how far it is from its neighbours in the layer."""

    x: float
    y: float
    spacing: float

    @property
    def width(self) -> float:
        return min(_WIDEST_NODE, self.spacing * 0.8)


@dataclass(frozen=True, slots=True)
class _Strand:
    """What is drawn as one line: a cable between switches, or all cables of a host; first end, second end, tooltip.

    ``shift`` is its place beside its parallels, ``heat`` the class of the most intense job on it (None: nothing).
    """

    ends: tuple[str, str]
    shift: float
    load: float
    heat: int | None
    tip: str


@dataclass(frozen=True, slots=True)
class HeatScale:
    """Classes of equal ratio, intensity ``least`` to ``most``: a class means one thing under every policy."""

    least: float
    most: float

    @classmethod
    def of(cls, results: Sequence[RunResult]) -> Self:
        """The scale on which all jobs of all results lie."""
        intensities = [job.intensity for result in results for job in result.jobs if job.intensity]
        return cls(min(intensities, default=1.0), max(intensities, default=1.0))

    def heat(self, intensity: float | None) -> int:
        """A class from 0 to ``NUM_HEATS - 1``, the most intense; 0 for no intensity."""
        if not intensity:
            return 0
        if self.most <= self.least * (1 + 1e-9):
            return NUM_HEATS - 1
        return round(math.log(intensity / self.least) / math.log(self.most / self.least) * (NUM_HEATS - 1))


def topology(result: RunResult, scale: HeatScale) -> Markup:
    """Aggregation above ToRs above hosts, or as many layers of switches as there are."""
    layers = _layers(result.fabric)
    places = _places(layers)
    strands = sorted(_strands(result, scale), key=lambda strand: -1 if strand.heat is None else strand.heat)
    return picture(
        _WIDTH,
        _LAYER * (len(layers) - 1) + _NODE_HEIGHT + 2 * _MARGIN,
        f"The fabric and what its links carry under {result.policy}",
        *(_draw_strand(strand, places) for strand in strands),
        *(_draw_node(node, place, node in result.fabric.host_index) for node, place in places.items()),
    )


def _layers(fabric: Fabric) -> list[list[str]]:
    """Nodes by their distance from the nearest host, the farthest first, the hosts themselves last."""
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
        spacing = (_WIDTH - 2 * _MARGIN) / len(nodes)
        for position, node in enumerate(nodes):
            x, y = _MARGIN + spacing * (position + 0.5), _MARGIN + _NODE_HEIGHT / 2 + _LAYER * number
            places[node] = _Place(x, y, spacing)
    return places


def _strands(result: RunResult, scale: HeatScale) -> Iterator[_Strand]:
    fabric, loads, jobs_on = result.fabric, mean_loads(result), _jobs_on_links(result)
    heat_of = {job.name: scale.heat(job.intensity) for job in result.jobs}
    bundles: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, cable in enumerate(fabric.cables):
        bundles[cable.ends].append(number)
    for ends, cables in bundles.items():
        at_host = ends[0] in fabric.host_index or ends[1] in fabric.host_index
        shown = [cables] if at_host else [[cable] for cable in cables]
        for position, strand in enumerate(shown):
            jobs = sorted({job for cable in strand for link in _links_of(cable) for job in jobs_on.get(link, ())})
            load = max(sum(loads[2 * cable + way] for cable in strand) / len(strand) for way in (0, 1))
            name = f"{ends[0]}, {ends[1]}" if at_host else link_name(result, 2 * strand[0])
            yield _Strand(
                ends,
                (position - (len(shown) - 1) / 2) * _PARALLEL_GAP,
                load,
                max((heat_of[job] for job in jobs), default=None),
                f"{name}: {', '.join(jobs) or 'carries nothing'}, {percent(load)} loaded",
            )


def _links_of(cable: int) -> tuple[int, int]:
    return 2 * cable, 2 * cable + 1


def _jobs_on_links(result: RunResult) -> Mapping[int, set[str]]:
    jobs: defaultdict[int, set[str]] = defaultdict(set)
    for flow in result.flows:
        for link in flow.path:
            jobs[link].add(flow.job)
    return jobs


def _draw_strand(strand: _Strand, places: Mapping[str, _Place]) -> Markup:
    first, second = (places[end] for end in strand.ends)
    if first.y == second.y:
        # Between neighbours a straight line; farther apart it sags, so as not to run through the nodes between.
        y, apart = first.y + strand.shift, abs(second.x - first.x)
        sag = min((apart / first.spacing - 1) * _SAG, _LAYER * 0.8)
        way = f"M{first.x:.1f} {y:.1f}Q{(first.x + second.x) / 2:.1f} {y + sag:.1f} {second.x:.1f} {y:.1f}"
    else:
        way = f"M{first.x + strand.shift:.1f} {first.y:.1f}L{second.x + strand.shift:.1f} {second.y:.1f}"
    return element(
        "path",
        element("title", strand.tip),
        d=way,
        class_="cable idle" if strand.heat is None else f"cable heat-{strand.heat}",
        stroke_width=None if strand.heat is None else 1 + (_THICKEST - 1) * min(strand.load, 1.0),
    )


def _draw_node(name: str, place: _Place, is_host: bool) -> Markup:
    corner = (place.x - place.width / 2, place.y - _NODE_HEIGHT / 2)
    box = rectangle(*corner, place.width, _NODE_HEIGHT, "node host" if is_host else "node", element("title", name))
    if place.width < _NARROWEST_NAMED:
        return box
    return joined((box, text(place.x, place.y + 4, name[:6], "name", "middle")))
