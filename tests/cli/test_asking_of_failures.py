"""What ``trainyard show`` and ``explain`` say of links that are dead and of flows that have no path left."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Trainyard
from tests.controller.operations.builders import planned_controller, served


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a controller that has heard at 1 s that the cable to h2 is down; now it is 4 s."""
    controller = planned_controller()
    [link] = [link for link in controller.fabric.links_from["t1"] if link.destination == "h2"]
    controller.planner.links.note({"t1": {link.source_port: False}}, 1.0)
    asyncio.run(controller.planner.settle())
    with served(controller) as address:
        yield address


def test_dead_links_are_listed(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("show", "links", "--json", "--controller", address)
    [link] = json.loads(ended.stdout)["links"]
    assert {link["source"], link["destination"]} == {"t1", "h2"}
    assert (link["is_down"], link["falls"], link["fell_ago_s"]) == (True, 1, 3.0)
    assert "held_for_s" not in link
    assert "down" in trainyard("show", "links", "--controller", address).stdout


def test_flows_without_a_path_are_marked(trainyard: Trainyard, address: str) -> None:
    flows = json.loads(trainyard("show", "paths", "--json", "--controller", address).stdout)["paths"]
    # gpt and resnet have a host each there; bert does not.
    assert {flow["job"] for flow in flows if flow["is_cut_off"]} == {"gpt", "resnet"}
    assert {flow["job"] for flow in flows if not flow["is_cut_off"]} == {"bert"}
    explained = trainyard("explain", "gpt/ring/0", "--controller", address).stdout
    assert "Failures have left it no path" in explained
    assert "Failures" not in trainyard("explain", "bert/ring/0", "--controller", address).stdout
