import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.trainyard.cli.conftest import Trainyard
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

EXAMPLE_1 = SHIPPED_SCENARIOS / "crux-example-1.yaml"
FIG_19 = SHIPPED_SCENARIOS / "fig19-n4.yaml"


def test_json_has_the_keys_that_programs_rely_on(trainyard: Trainyard) -> None:
    result = trainyard("plan", EXAMPLE_1, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    plan = json.loads(result.stdout)
    assert list(plan) == ["policy", "jobs", "flows", "num_rules"]
    assert list(plan["jobs"][0]) == ["name", "intensity", "correction_factor", "priority", "rank", "level"]
    assert list(plan["flows"][0]) == [
        *("job", "group", "flow", "source", "destination", "path", "links", "level", "order", "source_port")
    ]


def test_example_1_of_crux_puts_the_smaller_job_first(trainyard: Trainyard) -> None:
    plan = json.loads(trainyard("plan", EXAMPLE_1, "--policy", "crux", "--json").stdout)
    first, second = plan["jobs"]
    assert (first["name"], first["rank"], second["name"], second["rank"]) == ("job-2", 0, "job-1", 1)
    assert first["level"] > second["level"]
    assert first["correction_factor"] == pytest.approx(1.5)
    assert first["priority"] == pytest.approx(1.5 * first["intensity"])
    assert {flow["job"]: flow["level"] for flow in plan["flows"]} == {
        "job-1": second["level"],
        "job-2": first["level"],
    }


def test_every_policy_has_a_line_of_its_own(trainyard: Trainyard) -> None:
    lines = trainyard("plan", EXAMPLE_1, "--policy", "ecmp", "--policy", "crux", "--policy", "ecmp", "--json").stdout
    ecmp, crux = (json.loads(line) for line in lines.splitlines())
    assert (ecmp["policy"], crux["policy"]) == ("ecmp", "crux")
    assert [(job["correction_factor"], job["priority"]) for job in ecmp["jobs"]] == [(None, None)] * 2
    assert ecmp["num_rules"] == 0


def test_paths_lead_over_links_that_exist(trainyard: Trainyard) -> None:
    plan = json.loads(trainyard("plan", FIG_19, "--json").stdout)
    fabric = load_scenario(FIG_19).topology.build()
    assert len({(flow["job"], flow["group"], flow["flow"]) for flow in plan["flows"]}) == len(plan["flows"]) > 10
    for flow in plan["flows"]:
        nodes = flow["path"]
        assert (nodes[0], nodes[-1]) == (flow["source"], flow["destination"])
        for here, there, number in zip(nodes[:-1], nodes[1:], flow["links"], strict=True):
            assert 0 <= number < sum(link.destination == there for link in fabric.links_from[here])


def test_people_get_tables_with_the_reason_of_every_job(trainyard: Trainyard) -> None:
    words = trainyard("plan", EXAMPLE_1).stdout
    assert "crux: 2 jobs, 2 rules" in words
    assert "job-1: Each second on its bottleneck link" in words
    assert "h1.0>t0.0>t1.0>h3" in words


def test_names_that_look_like_markup_are_printed_as_they_are(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    document["jobs"][0]["name"] = "[bold]a"
    assert "[bold]a" in trainyard("plan", write(document)).stdout


def test_the_policy_is_the_scenarios_own_unless_asked(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    def policy_of(*arguments: str | Path) -> str:
        return str(json.loads(trainyard("plan", "--json", *arguments).stdout)["policy"])

    assert policy_of(write(document)) == "crux"
    own = write(document | {"policy": "ecmp"})
    assert policy_of(own) == "ecmp"
    assert policy_of(own, "--policy", "crux-pa") == "crux-pa"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((FIG_19, "--policy", "magic"), "magic"), (("nowhere.yaml",), "nowhere.yaml: cannot be read")],
)
def test_bad_input_is_named(trainyard: Trainyard, arguments: tuple[str | Path, ...], said: str) -> None:
    result = trainyard("plan", *arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_difference_tells_who_came_what_it_gains_and_which_levels_change(trainyard: Trainyard, tmp_path: Path) -> None:
    """The urgent job of the example is not there yet: when it comes, the other one gives way."""
    before = tmp_path / "before.yaml"
    text = EXAMPLE_1.read_text()
    scenario = yaml.safe_load(text)
    scenario["jobs"] = [job for job in scenario["jobs"] if job["name"] == "job-1"]
    before.write_text(yaml.safe_dump(scenario))
    arguments = ("plan", EXAMPLE_1, "--diff", before, "--policy", "trainyard")
    difference = json.loads(trainyard(*arguments, "--json").stdout)["difference"]
    assert list(difference) == ["came", "went", "worth_in_force", "worth_decided", "levels", "moved"]
    assert (difference["came"], difference["went"], difference["moved"]) == (["job-2"], [], [])
    assert difference["levels"] == [{"job": "job-1", "group": "communication", "before": 7, "after": 6}]
    assert difference["worth_decided"] > difference["worth_in_force"] > 0
    words = trainyard(*arguments).stdout
    assert "Arrived: job-2. Departed: none." in words
    assert "compared with keeping the Plan in force" in " ".join(words.split())


def test_difference_to_another_fabric_is_refused(trainyard: Trainyard) -> None:
    result = trainyard("plan", EXAMPLE_1, "--diff", FIG_19)
    assert result.exit_code == 2
    assert "fig19-n4.yaml: topology" in result.stderr
