"""``trainyard show`` and ``trainyard explain`` against a controller over gRPC."""

import json
import re
from collections.abc import Iterator

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.sentences import sentences
from tests.controller.api.operations.builders import HOSTS, PlannedController, planned_controller, served
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture(scope="module")
def controller() -> PlannedController:
    return planned_controller()


@pytest.fixture(scope="module")
def address(controller: PlannedController) -> Iterator[str]:
    with served(controller) as address:
        yield address


def test_every_view_as_json_agrees_with_the_decision(
    trainyard: Trainyard, controller: PlannedController, address: str
) -> None:
    decision = controller.decision

    def shown(what: str) -> list[dict[str, object]]:
        ended = trainyard("show", what, "--json", "--controller", address)
        assert ended.exit_code == 0, ended.stderr
        return json.loads(ended.stdout)[what]

    jobs = shown("jobs")
    assert [job["name"] for job in jobs] == [plan.name for plan in decision.plan.jobs] == ["gpt", "bert", "resnet"]
    assert [(job["hosts"], job["flows"], job["lease_s"]) for job in jobs] == [
        (list(HOSTS[str(job["name"])]), 2, 6.0) for job in jobs
    ]
    assert [job["intensity"] for job in jobs] == [plan.intensity for plan in decision.plan.jobs]
    paths = shown("paths")
    assert len(paths) == 6
    assert {path["level"] for path in paths if path["job"] == "gpt"} == {decision.plan.jobs[0].level}
    levels = shown("levels")
    assert [level["level"] for level in levels] == sorted({plan.level for plan in decision.plan.jobs}, reverse=True)
    assert sum(int(str(level["flows"])) for level in levels) == 6
    assert len(shown("rules")) == decision.num_rules
    switches = shown("switches")
    assert sum(int(str(switch["num_planned_rules"])) for switch in switches) == decision.num_rules > 0
    assert {switch["num_rules"] for switch in switches} == {0}  # nothing has been written to these switches
    assert {switch["condition"] for switch in switches} == {"CAUGHT_UP"}
    [pair] = [pair for pair in shown("candidates") if pair["received"]]
    assert (pair["source"], pair["destination"], pair["is_complete"]) == ("h0.0", "h2.0", False)
    assert (pair["received"], pair["missing"], pair["duplicates"]) == (4, 1, 1)
    assert len(pair["candidates"]) == 8
    seen, unseen = pair["candidates"][:2]
    assert (seen["freshness"], seen["source_ports"], seen["age_s"]) == ("FRESH", [49152], 4.0)
    assert (unseen["freshness"], unseen["source_ports"], "age_s" in unseen) == ("UNSEEN", [], False)
    loads = shown("loads")
    assert [load["levels"] for load in loads] == [[{"level": 3, "latency_us": 7, "queue_packets": 2}]] * 3
    assert [(drop["host"], drop["count"]) for drop in shown("drops")] == [("", 1), ("", 2), ("h2", 3)]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("jobs", "resnet"),
        ("paths", "gpt/ring/1"),
        ("levels", "gpt, bert"),
        ("rules", "udp 10.0.0.1:49152 > 10.0.2.1:4791"),
        ("switches", "caught up"),
        ("candidates", "unseen"),
        ("candidates", "4 probes received, 0 late;"),
        ("candidates", "1 missing, 1 reported twice"),
        ("loads", "3: 7 µs"),
        ("drops", "reported before"),
        ("drops", "another agent"),
    ],
)
def test_tables_for_people(
    trainyard: Trainyard, address: str, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    ended = trainyard("show", what, "--controller", address)
    assert ended.exit_code == 0
    assert said in ended.stdout


@pytest.mark.parametrize("what", ["jobs", "paths", "rules", "candidates", "loads"])
def test_nothing_is_cut_at_80_columns(
    trainyard: Trainyard, address: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def shown(columns: int) -> str:
        """What a table holds, however it is laid out."""
        monkeypatch.setenv("COLUMNS", str(columns))
        ended = trainyard("show", what, "--controller", address)
        assert max(map(len, ended.stdout.splitlines())) <= columns
        return "".join(sorted(re.sub(r"[\s\u2500]", "", ended.stdout)))

    assert shown(80) == shown(300)


def test_a_job_that_has_told_what_an_iteration_does_is_explained_with_it() -> None:
    job = wire.JobExplanation(state=wire.JobState(name="gpt"), tasks=1_200)
    assert "It has told what an iteration does, in 1,200 tasks." in list(sentences(wire.Explanation(job=job)))
    job.is_guessed = True
    assumed = "It has told what an iteration does, in 1,200 tasks, which it only assumes."
    assert assumed in list(sentences(wire.Explanation(job=job)))
    job.ClearField("tasks")
    assert not any("has told" in line for line in sentences(wire.Explanation(job=job)))


def test_a_job_and_a_flow_explained(trainyard: Trainyard, address: str) -> None:
    job = trainyard("explain", "resnet", "--controller", address)
    assert "resnet: rank 2 of 3" in job.stdout
    assert "It meets gpt (rank 0, level 7), which goes before it" in job.stdout
    assert "At hosts, by rank: gpt (rank 0) goes before it, on 1 link; the fullest: h2.0>t1" in job.stdout
    assert "Decided by crux in Plan 1." in job.stdout
    flow = trainyard("explain", "resnet/ring/0", "--controller", address)
    assert "udp 10.0.1.1:49152 > 10.0.2.1:4791; 1\N{NO-BREAK SPACE}GB an iteration" in flow.stdout
    assert "Candidate paths (8)" in flow.stdout
    assert "marks it level 6" in flow.stdout
    answer = json.loads(trainyard("explain", "gpt/ring/0", "--json", "--controller", address).stdout)
    assert (answer["policy"], answer["flow"]["state"]["job"]) == ("crux", "gpt")


def test_a_name_that_nothing_has_is_bad_input(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("explain", "nobody", "--controller", address)
    assert ended.exit_code == 2
    assert "no job 'nobody'; it has bert, gpt, resnet" in ended.stderr


def test_addresses_that_are_none_are_bad_input(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("show", "jobs", "--controller", address, "--controller", "nowhere", "--controller", "h:99999")
    assert ended.exit_code == 2
    said = "--controller: expected HOST:PORT with a port from 1 to 65535, or unix:/PATH, got"
    assert ended.stderr.splitlines() == [f"{said} {wrong!r}" for wrong in ("nowhere", "h:99999")]


def test_a_controller_shows_itself(trainyard: Trainyard, address: str) -> None:
    (state,) = json.loads(trainyard("show", "controller", "--json", "--controller", address).stdout)["controller"]
    expected = {"plan_number": 1, "policy": "crux", "failed_decisions": 0, "policy_problem": ""}
    assert {name: state[name] for name in expected} == expected
    assert "database" not in state
    assert "none" in trainyard("show", "controller", "--controller", address).stdout


def test_a_controller_that_does_not_answer_is_a_failure(trainyard: Trainyard) -> None:
    ended = trainyard("show", "jobs", "--controller", "127.0.0.1:1")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("no controller answers at 127.0.0.1:1: ")


def test_of_several_addresses_the_one_that_answers_is_asked(trainyard: Trainyard, address: str) -> None:
    nobody = ("--controller", "127.0.0.1:1")
    ended = trainyard("show", "jobs", "--json", *nobody, "--controller", address)
    assert ended.exit_code == 0
    assert len(json.loads(ended.stdout)["jobs"]) == 3
    assert trainyard("explain", "nobody", *nobody, "--controller", address).exit_code == 2
    ended = trainyard("explain", "gpt", *nobody, "--controller", "127.0.0.1:2")
    assert ended.exit_code == 1
    assert "at 127.0.0.1:1: " in ended.stderr
    assert "at 127.0.0.1:2: " in ended.stderr
