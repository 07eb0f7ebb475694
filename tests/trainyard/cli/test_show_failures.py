"""What ``trainyard show`` and ``explain`` say of dead links, flows that have no path, and a database that is full."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.store.store import Store
from controller.telemetry.telemetry import Telemetry
from experiments.scenarios.driven.clock import DrivenClock
from tests.controller.api.operations.builders import planned_controller, served
from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.application import application


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a controller that has heard at 1 s that the cable to h2 is down; now it is 4 s."""
    controller = planned_controller()
    [link] = [link for link in controller.fabric.links_from["t1"] if link.destination == "h2"]
    controller.planner.links.set_port_states({"t1": {link.source_port: False}}, 1.0)
    asyncio.run(controller.planner.settle())
    with served(controller) as address:
        yield address


def test_dead_links_are_listed(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("show", "links", "--json", "--controller", address)
    [link] = json.loads(ended.stdout)["links"]
    assert {link["source"], link["destination"]} == {"t1", "h2"}
    assert (link["is_down"], link["falls"], link["fell_ago_s"]) == (True, 1, 3.0)
    assert "held_for_s" not in link
    told = trainyard("show", "links", "--controller", address).stdout
    assert "down" in told
    assert sorted(link["ports"].split(" - ")) == ["h2:eth0", "t1:1"]
    assert link["ports"] in " ".join(told.split())


def test_who_claims_to_hear_a_silent_link_is_named(trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = planned_controller()
    [link, *_] = [link.index for link in controller.fabric.links_from["t1"] if link.destination == "a0"]
    monkeypatch.setattr(Telemetry, "overruled", {link: {"h2", "h1"}})
    controller.planner.links.set_silent_links({link}, 1.0)
    with served(controller) as address:
        shown = json.loads(trainyard("show", "links", "--json", "--controller", address).stdout)["links"]
        assert [cable["claimants"] for cable in shown] == [["h1", "h2"]]
        told = trainyard("show", "links", "--controller", address).stdout
    assert "missed by all but h1, h2" in " ".join(told.split())


def test_flows_without_a_path_are_marked(trainyard: Trainyard, address: str) -> None:
    flows = json.loads(trainyard("show", "paths", "--json", "--controller", address).stdout)["paths"]
    # gpt and resnet have a host each there; bert does not.
    assert {flow["job"] for flow in flows if flow["is_cut_off"]} == {"gpt", "resnet"}
    assert {flow["job"] for flow in flows if not flow["is_cut_off"]} == {"bert"}
    explained = trainyard("explain", "gpt/ring/0", "--controller", address).stdout
    assert "Failures have left it no path" in explained
    assert "Failures" not in trainyard("explain", "bert/ring/0", "--controller", address).stdout


def test_decisions_that_fail_are_shown(trainyard: Trainyard) -> None:
    controller = planned_controller()
    controller.planner.policy.num_failures = 2
    controller.planner.policy.problem = "KeyError: 'h0'"
    with served(controller) as address:
        [state] = json.loads(trainyard("show", "controller", "--json", "--controller", address).stdout)["controller"]
        table = trainyard("show", "controller", "--controller", address).stdout
    shown = (state["policy"], state["failed_decisions"], state["policy_problem"])
    assert shown == (controller.planner.policy.name, 2, "KeyError: 'h0'")
    assert "KeyError: 'h0'" in table


def test_what_the_database_does_not_take_is_shown(trainyard: Trainyard, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "t.db"), DrivenClock())

    async def fill_the_disk() -> None:
        store.database.health.report("database t.db: disk is full")

    asyncio.run(fill_the_disk())
    store.trail.num_lost = 7
    with closing(store.database), served(planned_controller(), store) as address:
        [state] = json.loads(trainyard("show", "controller", "--json", "--controller", address).stdout)["controller"]
        assert (state["database_problem"], state["lost_writes"]) == ("database t.db: disk is full", 7)
        table = trainyard("show", "controller", "--controller", address).stdout
        assert "disk is full" in table
        assert "7" in next(line for line in table.splitlines() if "audit entries" in line)


def test_the_environment_names_the_controllers(trainyard: Trainyard, address: str) -> None:
    refused = trainyard("show", "links")
    assert (refused.exit_code, "127.0.0.1:1:" in refused.stderr) == (1, True)
    ended = CliRunner(env={"TRAINYARD_CONTROLLER": f"127.0.0.1:1, {address}"}).invoke(application, ["show", "links"])
    assert (ended.exit_code, "down" in ended.stdout) == (0, True)


def test_the_address_of_a_web_server_is_told_from_that_of_a_controller(trainyard: Trainyard) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = trainyard("show", "links", "--controller", f"127.0.0.1:{server.server_port}")
        server.shutdown()
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "commands need the address of `listen`, not that of the page" in refused.stderr
