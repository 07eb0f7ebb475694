"""``trainyard drain``, ``undrain`` and ``show drained`` against a running controller."""

import asyncio
import json

import pytest

from tests.controller.api.operations.builders import PlannedController
from tests.trainyard.cli.conftest import Ended, Trainyard


def settle(controller: PlannedController) -> None:
    """Make the Plan of now; nothing else makes any."""
    asyncio.run(controller.planner.settle())


def words(ended: Ended) -> str:
    return " ".join(ended.stdout.split())


def test_it_waits_until_it_is_safe(trainyard: Trainyard, controller: PlannedController, address: str) -> None:
    first = trainyard("drain", "switch", "a0", "--controller", address, "--time-limit-s", "0")
    assert first.exit_code == 1
    assert first.stdout == "draining switch a0\nwaiting for a Plan without it\n"
    assert first.stderr == "not safe yet after 0 s, still drained: switch a0\n"
    settle(controller)
    listed = json.loads(trainyard("show", "links", "--json", "--controller", address).stdout)["links"]
    assert listed
    assert all(link["state"] == "drained" and "a0" in (link["source"], link["destination"]) for link in listed)
    again = trainyard("drain", "switch", "a0", "--controller", address)
    assert (again.exit_code, again.stdout) == (0, "already drained: switch a0\nsafe to work on switch a0\n")
    flows = json.loads(trainyard("show", "paths", "--json", "--controller", address).stdout)["paths"]
    assert flows
    assert not any("a0" in flow["path"]["nodes"] for flow in flows)


def test_what_is_drained_is_shown_and_used_again(
    trainyard: Trainyard, controller: PlannedController, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    trainyard("drain", "link", "t0", "a1", "--parallel", "1", "--no-wait", "--controller", address)
    trainyard("drain", "host", "h3", "--no-wait", "--controller", address)
    settle(controller)
    shown = words(trainyard("show", "drained", "--controller", address))
    assert "2 drained" in shown
    assert "link a1:2 - t0:6 yes" in shown
    assert "host h3 no job bert to end: nothing else leads there" in shown
    link, host = json.loads(trainyard("show", "drained", "--json", "--controller", address).stdout)["drained"]
    assert (link["kind"], link["name"], link["is_safe"], link["waits_for"]) == ("LINK", "a1:2 - t0:6", True, [])
    assert (host["kind"], host["is_safe"], host["jobs"]) == ("HOST", False, ["bert"])
    ended = trainyard("undrain", "link", "a1", "t0", "--parallel", "1", "--controller", address)
    assert (ended.exit_code, ended.stdout) == (0, "in use again: link a1:2 - t0:6\n")
    again = trainyard("undrain", "link", "t0.1>a1", "--controller", address)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "link a1:2 - t0:6 is not drained; drained is host h3" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("switch", "a7"), 2, "no switch 'a7' is in the topology, which has t0, t1, a0, a1"),
        (("host", "nobody"), 2, "no host 'nobody' is in the topology"),
        (("link", "t0:77"), 2, "no port '77' is at t0"),
        (("link", "t0", "a0"), 2, "2 cables are between t0 and a0: say which with --parallel 0 to 1"),
        (
            ("switch", "t1"),
            1,
            "switch t1: it would cut off h2, h3; nothing has changed. Drain these hosts before it, or use --force",
        ),
        (("link", "h0", "t0"), 1, "it would cut off h0; nothing has changed"),
        (("switch", "a0", "a1"), 2, "switch: expected one name, got 2"),
        (("switch", "a0", "--time-limit-s", "nan"), 2, "--time-limit-s"),
        (("link", "t0", "a0", "--parallel", str(2**32)), 2, "--parallel"),
        (("link", "t0:1", "--parallel", "1"), 2, "--parallel: is for links that are named by two nodes"),
    ],
)
def test_what_cannot_be_drained_is_refused_by_name(
    trainyard: Trainyard, address: str, arguments: tuple[str, ...], status: int, said: str
) -> None:
    ended = trainyard("drain", *arguments, "--controller", address)
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert said in ended.stderr
    assert json.loads(trainyard("show", "drained", "--json", "--controller", address).stdout) == {"drained": []}


def test_force_says_which_jobs_are_cut_off(trainyard: Trainyard, controller: PlannedController, address: str) -> None:
    trainyard("drain", "switch", "t1", "--force", "--no-wait", "--controller", address)
    settle(controller)
    ended = trainyard("drain", "switch", "t1", "--controller", address)
    assert ended.exit_code == 0
    assert ended.stdout.endswith("safe to work on switch t1; cut off: bert, gpt, resnet\n")
    assert "switch t1 (forced)" in trainyard("show", "drained", "--controller", address).stdout
