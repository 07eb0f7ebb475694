"""The picture of a run in which things fail."""

from xml.etree import ElementTree

import pytest

from experiments.report.recovery import recovery
from tests.experiments.report.builders import make_result
from workloads.events import ElementState, ScenarioEvent

DOWN = ScenarioEvent(at_s=3.0, link=("t0", "a0"), state=ElementState.DOWN)


def test_every_policy_has_a_panel_of_steps_as_high_as_their_utilisation() -> None:
    results = [make_result(policy, utilisation, events=(DOWN,)) for policy, utilisation in (("ecmp", 0.5), ("crux", 1))]
    drawing = ElementTree.fromstring(recovery(results))
    tracks = drawing.findall("rect[@class='track']")
    steps = drawing.findall("rect[@class='compute']")
    assert len(tracks) == 2
    whole = float(tracks[0].attrib["height"])
    assert [float(step.attrib["height"]) / whole for step in steps] == pytest.approx([0.25, 0.5, 0.5, 1.0])
    bottoms = {float(step.attrib["y"]) + float(step.attrib["height"]) for step in steps}
    assert bottoms == {float(track.attrib["y"]) + whole for track in tracks}


def test_what_failed_is_marked_where_it_did() -> None:
    drawing = ElementTree.fromstring(recovery([make_result("crux", 0.5, events=(DOWN,))]))
    track = drawing.find("rect[@class='track']")
    mark = drawing.find("line[@class='event']")
    assert track is not None
    assert mark is not None
    left, width = float(track.attrib["x"]), float(track.attrib["width"])
    assert float(mark.attrib["x1"]) == pytest.approx(left + width * (3.0 - 1.0) / 8.0, abs=0.01)
    assert "cable t0 to a0 down at 3 s" in "".join(drawing.itertext())
