from dataclasses import replace
from xml.etree import ElementTree

import pytest

from experiments.report.topology import NUM_HEATS, HeatScale, topology
from experiments.scenarios.results import RunResult
from tests.experiments.report.builders import links_between, make_fabric, make_job, make_loads, make_result
from topologies.fabric import Cable, Fabric

FABRIC = make_fabric()


def _draw(result: RunResult) -> ElementTree.Element:
    return ElementTree.fromstring(topology(result, HeatScale.of([result])))


def _cables(drawing: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Drawn cables by the beginning of their tooltip, the name."""
    return {cable.findtext("title", "").split(":")[0]: cable for cable in drawing.findall("path")}


def test_hosts_lie_below_tors_and_tors_below_aggregation() -> None:
    heights: dict[str, set[float]] = {"h": set(), "t": set(), "a": set()}
    for node in _draw(make_result()).findall("rect"):
        heights[node.findtext("title", "")[0]].add(float(node.attrib["y"]))
    assert [len(ys) for ys in heights.values()] == [1, 1, 1]
    assert max(heights["a"]) < max(heights["t"]) < max(heights["h"])


def test_cables_between_switches_are_drawn_singly_and_those_of_a_host_together() -> None:
    cables = _cables(_draw(make_result()))
    assert len(cables) == 4 + 2 * 2 * 2
    arrow = "\N{RIGHTWARDS ARROW}"
    assert {f"t0 {arrow} a0 #0", f"t0 {arrow} a0 #1", "h0, t0"} <= cables.keys()


def test_cables_show_what_they_carry() -> None:
    fabric = FABRIC
    up = links_between(fabric, "t0", "a0")
    intense, mild = make_job("intense", intensity=100.0), make_job("mild", intensity=1.0)
    result = make_result(jobs=(intense, mild), loads=make_loads(fabric, {(up[0], 7): 0.9, (up[1], 7): 0.2}))
    detour = replace(result.flows[0], job="mild", path=(result.flows[0].path[0], up[1], *result.flows[0].path[2:]))
    cables = _cables(_draw(replace(result, flows=(*result.flows, detour))))
    arrow = "\N{RIGHTWARDS ARROW}"
    first, second, idle = (cables[f"t0 {arrow} {name}"] for name in ("a0 #0", "a0 #1", "a1 #0"))
    assert first.attrib["class"] == f"cable heat-{NUM_HEATS - 1}"
    assert second.attrib["class"] == "cable heat-0"
    assert idle.attrib["class"] == "cable idle"
    assert float(first.attrib["stroke-width"]) > float(second.attrib["stroke-width"])
    assert "intense, mild" in cables["h0, t0"].findtext("title", "")
    assert cables["h0, t0"].attrib["class"] == f"cable heat-{NUM_HEATS - 1}"


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
    cables = (
        *(Cable((host, switch), 1e9, 0.0) for host, switch in zip(("h0", "h1", "h2"), switches, strict=True)),
        Cable(("s0", "s1"), 1e9, 0.0),
        Cable(("s0", "s2"), 1e9, 0.0),
    )
    fabric = Fabric(("h0", "h1", "h2"), switches, cables, gpus_per_host=1)
    drawn = _cables(_draw(replace(make_result(), fabric=fabric, flows=(), loads=())))
    arrow = "\N{RIGHTWARDS ARROW}"

    def sag(name: str) -> float:
        start, control = drawn[name].attrib["d"].removeprefix("M").split("Q")
        return float(control.split()[1]) - float(start.split()[1])

    assert sag(f"s0 {arrow} s1") == 0
    assert sag(f"s0 {arrow} s2") > 0
