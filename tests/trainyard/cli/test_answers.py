"""What programs get of commands: JSON, YAML and CSV with the same keys and the same numbers."""

import csv
import io
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import ParseDict

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import LIST_JOBS, LIST_LOADS
from policies.registry import policy_names
from tests.controller.api.operations.builders import planned_controller, served
from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.answers import Answer, OutputFormat, Writer
from trainyard.cli.show import Subject
from trainyard.cli.wire_answers import listing_answer
from workloads.loading import SHIPPED_SCENARIOS

SCENARIO = SHIPPED_SCENARIOS / "crux-example-1.yaml"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(planned_controller()) as address:
        yield address


@pytest.fixture(scope="module")
def idle_address() -> Iterator[str]:
    """Of a controller without jobs."""
    with served(planned_controller(())) as address:
        yield address


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("what", Subject)
def test_every_view_says_the_same_in_every_format(trainyard: Trainyard, address: str, what: str) -> None:
    def shown(*options: str) -> str:
        ended = trainyard("show", what, *options, "--controller", address)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert ended.stdout.endswith("\n")
        return ended.stdout

    found = json.loads(shown("-o", "json"))
    assert shown("--json") == shown("--output", "json")
    assert list(found) == [what]
    assert yaml.safe_load(shown("-o", "yaml")) == found
    table = rows(shown("-o", "csv"))
    assert len(table) == len(found[what])
    for row, state in zip(table, found[what], strict=True):
        for key, value in state.items():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                assert row[key] == str(value)


def test_csv_has_the_same_columns_with_and_without_states(capsys: pytest.CaptureFixture[str]) -> None:
    state = wire.JobState(name="=gpt\x1b[31m, a", hosts=["h0", "h1"], intensity=1 / 3)
    for states in ([], [state]):
        Writer(OutputFormat.CSV).write(listing_answer("jobs", LIST_JOBS, states, lambda _: "", ""))
    header, again, row = capsys.readouterr().out.splitlines()
    assert header == again
    assert header.split(",")[:4] == ["name", "hosts", "gpus", "flow_groups"]
    assert "profile.period_s" in header.split(",")
    assert row.startswith('"=gpt\\x1b[31m, a",h0 h1,0,0,0,0.0,,,0.3333333333333333,')
    state = wire.LoadState(levels=[wire.LevelMeasurement(level=3, latency_us=7)])
    Writer(OutputFormat.CSV).write(listing_answer("loads", LIST_LOADS, [state], lambda _: "", ""))
    (row,) = rows(capsys.readouterr().out)
    assert json.loads(row["levels"]) == [{"level": 3, "latency_us": 7}]


def test_what_json_has_no_word_for_becomes_plain(capsys: pytest.CaptureFixture[str]) -> None:
    class Colour(StrEnum):
        RED = "red"

    document = {"colour": Colour.RED, "path": Path("a/b"), "rate_bps": float("inf"), "pair": (1, 2**63), "no": None}
    plain = {"colour": "red", "path": "a/b", "rate_bps": None, "pair": [1, 2**63], "no": None}
    Writer(OutputFormat.JSON).write(Answer(document, [document]))
    assert json.loads(capsys.readouterr().out) == plain
    writer = Writer(OutputFormat.YAML)
    writer.write(Answer(document, [document]))
    writer.write(Answer({"name": "no"}, []))
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == [plain, {"name": "no"}]


def test_plans_are_documents_and_rows(trainyard: Trainyard) -> None:
    command = ("plan", SCENARIO, "--policy", "ecmp", "--policy", "crux")
    documents = [json.loads(line) for line in trainyard(*command, "-o", "json").stdout.splitlines()]
    assert list(yaml.safe_load_all(trainyard(*command, "-o", "yaml").stdout)) == documents
    table = rows(trainyard(*command, "-o", "csv").stdout)
    flows: list[tuple[Any, ...]] = [
        (found["policy"], flow["job"], flow["group"], str(flow["flow"]), " ".join(flow["path"]))
        for found in documents
        for flow in found["flows"]
    ]
    assert [tuple(row[key] for key in ("policy", "job", "group", "flow", "path")) for row in table] == flows
    levels = {(found["policy"], job["name"]): str(job["level"]) for found in documents for job in found["jobs"]}
    assert all(row["job_level"] == levels[row["policy"], row["job"]] for row in table)


def test_all_policies_are_the_registered_ones(trainyard: Trainyard) -> None:
    found = json.loads(trainyard("policies", "-o", "json").stdout)["policies"]
    assert [each["name"] for each in found] == list(policy_names())
    assert rows(trainyard("policies", "-o", "csv").stdout) == found
    planned = trainyard("plan", SCENARIO, "--policy", "crux", "--policy", "all", "--json").stdout.splitlines()
    names = [json.loads(line)["policy"] for line in planned]
    assert names == ["crux", *(name for name in policy_names() if name != "crux")]


def test_cables_of_a_topology_are_rows(trainyard: Trainyard) -> None:
    table = rows(trainyard("topology", SCENARIO, "-o", "csv").stdout)
    document = json.loads(trainyard("topology", SCENARIO, "-o", "json").stdout)
    assert [
        [[row["source"], int(row["source_port"])], [row["destination"], int(row["destination_port"])]] for row in table
    ] == [cable["ends"] for cable in document["cables"]]
    assert [float(row["rate_bps"]) for row in table] == [cable["rate_bps"] for cable in document["cables"]]


def test_an_explanation_is_no_list(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("explain", "gpt", "-o", "csv", "--controller", address)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == "--output: expected table, json or yaml, as an explanation is no list, got csv\n"
    found = yaml.safe_load(trainyard("explain", "gpt", "-o", "yaml", "--controller", address).stdout)
    assert ParseDict(found, wire.Explanation()).job.state.name == "gpt"


def test_a_format_that_is_none_is_bad_input(trainyard: Trainyard) -> None:
    ended = trainyard("policies", "-o", "xml")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "xml" in ended.stderr


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("jobs", "no jobs are registered"),
        ("paths", "no flows are planned: no job sends any"),
        ("levels", "no level is in use"),
        ("rules", "no rules are planned"),
        ("links", "all cables are used"),
        ("cables", "the fabric is as its file says"),
        ("drained", "nothing is drained"),
        ("pins", "nothing is pinned"),
        ("candidates", "hosts do not probe"),
        ("loads", "no switch has reported a load: hosts do not probe"),
        ("drops", "no report and no packet of a probe was rejected"),
    ],
)
def test_what_is_empty_says_why(trainyard: Trainyard, idle_address: str, what: str, why: str) -> None:
    ended = trainyard("show", what, "--controller", idle_address)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.startswith(why)
    assert json.loads(trainyard("show", what, "-o", "json", "--controller", idle_address).stdout) == {what: []}
