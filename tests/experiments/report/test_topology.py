from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch, PathPatch

from experiments.report.figure import ReportFigure
from experiments.report.style import NUM_HEATS, colour
from experiments.report.topology import HeatScale, topology
from experiments.scenarios.results import RunResult
from tests.experiments.report.builders import links_between, make_fabric, make_job, make_loads, make_result
from topologies.fabric import Cable, Fabric
from workloads.events import ElementState, ScenarioEvent

FABRIC = make_fabric()
ARROW = "\N{RIGHTWARDS ARROW}"


def draw(result: RunResult) -> ReportFigure:
    return topology(result, HeatScale.of([result]))


def cables(drawn: ReportFigure) -> dict[str, PathPatch]:
    """Drawn cables by the beginning of their tooltip, the name."""
    found = [mark for mark in drawn.figure.axes[0].get_children() if isinstance(mark, PathPatch) and mark.get_gid()]
    return {drawn.tooltips[str(mark.get_gid())].split(":")[0]: mark for mark in found}


def nodes(drawn: ReportFigure) -> dict[str, FancyBboxPatch]:
    found = [mark for mark in drawn.figure.axes[0].get_children() if isinstance(mark, FancyBboxPatch)]
    return {drawn.tooltips[str(mark.get_gid())]: mark for mark in found}


def test_hosts_lie_below_tors_and_tors_below_aggregation() -> None:
    heights: dict[str, set[float]] = {"h": set(), "t": set(), "a": set()}
    for name, box in nodes(draw(make_result())).items():
        heights[name[0]].add(box.get_y())
    assert [len(ys) for ys in heights.values()] == [1, 1, 1]
    assert max(heights["a"]) < max(heights["t"]) < max(heights["h"])


def test_cables_between_switches_are_drawn_singly_and_those_of_a_host_together() -> None:
    drawn = draw(make_result())
    assert len(cables(drawn)) == len(drawn.data.rows) == 4 + 2 * 2 * 2
    assert {f"t0 {ARROW} a0 #0", f"t0 {ARROW} a0 #1", "h0, t0"} <= cables(drawn).keys()


def test_cables_show_what_they_carry() -> None:
    up = links_between(FABRIC, "t0", "a0")
    intense, mild = make_job("intense", intensity=100.0), make_job("mild", intensity=1.0)
    result = make_result(jobs=(intense, mild), loads=make_loads(FABRIC, {(up[0], 7): 0.9, (up[1], 7): 0.2}))
    detour = replace(result.flows[0], job="mild", path=(result.flows[0].path[0], up[1], *result.flows[0].path[2:]))
    drawn = draw(replace(result, flows=(*result.flows, detour)))
    first, second, idle = (cables(drawn)[f"t0 {ARROW} {name}"] for name in ("a0 #0", "a0 #1", "a1 #0"))
    assert to_hex(first.get_edgecolor()) == colour(f"heat-{NUM_HEATS - 1}")
    assert to_hex(second.get_edgecolor()) == colour("heat-0")
    assert to_hex(idle.get_edgecolor()) == colour("hair")
    assert first.get_linewidth() > second.get_linewidth() > idle.get_linewidth()
    rows = {row[2]: row for row in drawn.data.rows}
    assert rows["h0, t0"][4] == "intense mild"
    assert rows[f"t0 {ARROW} a0 #0"][3] == pytest.approx(0.9)


def test_what_has_failed_can_be_seen() -> None:
    events = (
        ScenarioEvent(at_s=3.0, link=("a0", "t0"), parallel=1, state=ElementState.DOWN),
        ScenarioEvent(at_s=4.0, switch="a1", state=ElementState.DOWN),
    )
    drawn = draw(make_result(events=events))
    failed = [words for words in drawn.tooltips.values() if words.endswith("failed during the run")]
    assert [words.split(":")[0].split(",")[0] for words in failed] == [f"t0 {ARROW} a0 #1", "a1"]
    assert to_hex(nodes(drawn)["a1, failed during the run"].get_edgecolor()) == colour("event")
    assert drawn.figure.legends[0].get_texts()[-1].get_text() == "failed during the run"


def test_heats_are_classes_of_equal_ratio_over_all_results() -> None:
    results = [make_result(jobs=(make_job(intensity=intensity),)) for intensity in (1.0, 10_000.0)]
    scale = HeatScale.of(results)
    assert [scale.heat(10.0**power) for power in range(5)] == list(range(NUM_HEATS))
    assert scale.heat(None) == 0


@pytest.mark.parametrize(("intensity", "heat"), [(7.0, NUM_HEATS - 1), (None, 0)])
def test_one_intensity_alone_is_the_most_intense(intensity: float | None, heat: int) -> None:
    assert HeatScale.of([make_result(jobs=(make_job(intensity=intensity),))]).heat(intensity) == heat


def test_a_cable_between_far_nodes_of_a_layer_goes_around_those_between() -> None:
    switches = ("s0", "s1", "s2")
    ends = [*zip(("h0", "h1", "h2"), switches, strict=True), ("s0", "s1"), ("s0", "s2")]
    fabric = Fabric(("h0", "h1", "h2"), switches, tuple(Cable(pair, 1e9, 0.0) for pair in ends), gpus_per_host=1)
    drawn = cables(draw(replace(make_result(), fabric=fabric, flows=(), loads=())))

    def sag(name: str) -> float:
        (_, start), (_, control), _ = drawn[name].get_path().vertices.tolist()
        return float(control - start)

    assert sag(f"s0 {ARROW} s1") == 0
    assert sag(f"s0 {ARROW} s2") > 0
