from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.workloads.refusing import Document, change
from workloads.loading import SHIPPED_SCENARIOS, ScenarioError, load_scenario
from workloads.scenario import Scenario
from workloads.workload import PhasesWorkload


@pytest.mark.parametrize("path", sorted(SHIPPED_SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_scenarios_load_under_their_own_names(path: Path) -> None:
    assert load_scenario(path).name == path.stem


@pytest.mark.parametrize(
    ("written", "read"), [("2.6e9", 2.6e9), ("3e9", 3e9), ("1.5E+8", 1.5e8), (".5e3", 500.0), ("7", 7.0)]
)
def test_numbers_need_no_sign_in_the_exponent(written: str, read: float, document: Document, tmp_path: Path) -> None:
    path = tmp_path / "numbers.yaml"
    path.write_text(change(document, ("jobs", 0, "workload", "bytes"), "AMOUNT").replace("AMOUNT", written))
    workload = load_scenario(path).jobs[0].workload
    assert isinstance(workload, PhasesWorkload)
    assert workload.bytes == read


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("sede",), 1, "sede: unknown key; expected one of compute_jitter, congestion_control, events, hash, jobs,"),
        (("topology", "colour"), "red", "topology.colour: unknown key; expected one of bottleneck_gbps,"),
        (
            ("topology", "kind"),
            "torus",
            "topology.kind: expected one of 'clos', 'double_sided', 'fat_tree', 'dumbbell', ",
        ),
        (("topology", "hosts_per_side"), -1, "topology.hosts_per_side: expected greater than 0, got -1"),
        (("jobs",), [], "jobs: "),
        (("jobs",), 7, "jobs: expected a list, got 7"),
        (("jobs", 0), "a", "jobs[0]: expected a mapping, got 'a'"),
        (("jobs", 0, "colour"), "red", "jobs[0] a, colour: unknown key; expected one of arrival_s, duration_s,"),
        (("jobs", 0, "name"), "", "jobs[0].name: expected at least 1 character, got ''"),
        (("jobs", 0, "name"), "j" * 257, "jobs[0].name: expected at most 256 characters, got 'jjj"),
        (("jobs", 0, "name"), "a/b", "jobs[0].name: expected printable characters and no slash, got 'a/b'"),
        (("jobs", 0, "name"), "a\u2028m", "jobs[0].name: expected printable characters and no slash, got 'a\\u2028m'"),
        (
            ("jobs", 0, "hosts", 1),
            "h9",
            "jobs[0] a, hosts[1]: expected a host of the topology (h0, h1, h2, h3), got 'h9'",
        ),
        (("jobs", 0, "hosts", 1), "h0", "jobs[0] a, hosts[1]: expected every host once, 'h0' is there twice"),
        (("jobs", 0, "hosts", 1), 3, "jobs[0] a, hosts[1]: expected a valid string, got 3"),
        (("jobs", 0, "gpus_per_host"), True, "jobs[0] a, gpus_per_host: expected a valid integer, got True"),
        (("jobs", 0, "arrival_s"), -0.5, "jobs[0] a, arrival_s: expected greater than or equal to 0, got -0.5"),
        (
            ("jobs", 0, "duration_s"),
            5,
            "jobs[0] a, duration_s: expected exactly one of iterations and duration_s, got 5",
        ),
        (("jobs", 0, "iterations"), None, "jobs[0] a, duration_s: expected exactly one of iterations and duration_s"),
        (
            ("jobs", 0, "workload", "type"),
            "gpt",
            "jobs[0] a, workload.type: expected one of 'phases', 'command', 'torch', 'dp', 'zero', 'ps', 'tp', 'moe', "
            "'cp', 'pp', 'fsdp', 'combined', 'chakra', got",
        ),
        (
            ("jobs", 0, "workload", "bytes"),
            -1.0,
            "jobs[0] a, workload.bytes: expected greater than or equal to 0, got -1.0",
        ),
        (("jobs", 0, "workload", "bytes"), 2.0**63, "jobs[0] a, workload.bytes: expected less than"),
        (("jobs", 0, "workload", "bytes"), "1", "jobs[0] a, workload.bytes: expected a valid number, got '1'"),
        (
            ("jobs", 0, "workload", "bytes"),
            float("nan"),
            "jobs[0] a, workload.bytes: expected a finite number, got nan",
        ),
        (
            ("jobs", 0, "workload", "bytes"),
            None,
            "jobs[0] a, workload.flows: expected either both bytes and pattern, or",
        ),
        (("jobs", 0, "workload", "flows"), [], "jobs[0] a, workload.flows: expected either both bytes and pattern, or"),
        (
            ("jobs", 0, "workload", "pattern"),
            "star",
            "jobs[0] a, workload.pattern: expected 'ring', 'all_to_all' or 'pairs'",
        ),
        (
            ("jobs", 0, "workload", "comm_start"),
            1.5,
            "jobs[0] a, workload.comm_start: expected less than or equal to 1",
        ),
        (("jobs", 0, "workload", "compute_s"), 0, "jobs[0] a, workload.compute_s: expected greater than 0, got 0"),
        (
            ("jobs", 0, "workload", "color"),
            0,
            "jobs[0] a, workload.color: unknown key; expected one of bytes, comm_start,",
        ),
        (("measure",), {"from_s": 2, "to_s": 1}, "measure.to_s: expected more than from_s, which is 2.0, got 1"),
        (("scale",), 0, "scale: expected greater than 0, got 0"),
        ((3,), 0, "3: expected text as a key"),
    ],
)
def test_one_mistake_is_named_with_its_key_path(
    path: tuple[str | int, ...], value: object, message: str, document: Document, refuse: Callable[[str], list[str]]
) -> None:
    messages = refuse(change(document, path, value))
    assert len(messages) == 1
    assert messages[0].startswith(message)


def test_all_mistakes_come_at_once(document: Document, refuse: Callable[[str], list[str]]) -> None:
    document["sede"] = 1
    document["topology"]["colour"] = "red"
    first = document["jobs"][0]
    document["jobs"] += [
        {**first, "hosts": ["h0", "h9"], "colour": "blue"},
        {
            **first,
            "name": "b",
            "hosts": ["h1", "h3"],
            "workload": {
                "type": "phases",
                "compute_s": -1,
                "comm_start": 1,
                "flops": 1e15,
                "flows": [
                    {"source": "h1", "destination": "h0", "bytes": 1},
                    {"source": "h3", "destination": "h3", "bytes": -1},
                ],
            },
        },
        {**first, "name": "c", "hosts": ["h1", "h2", "h3"], "workload": {**first["workload"], "pattern": "pairs"}},
    ]
    assert {message.split(": ")[0] for message in refuse(yaml.safe_dump(document))} == {
        "sede",
        "topology.colour",
        "jobs[1] a, colour",
        "jobs[1].name",  # is the name of jobs[0]
        "jobs[1] a, hosts[0]",  # its GPUs are taken
        "jobs[1] a, hosts[1]",  # unknown
        "jobs[2] b, workload.compute_s",
        "jobs[2] b, workload.flows[0].destination",  # not a host of the job
        "jobs[2] b, workload.flows[1].destination",  # the source itself
        "jobs[2] b, workload.flows[1].bytes",
        "jobs[0] a, workload.flops",  # jobs[2] gives FLOPs
        "jobs[1] a, workload.flops",
        "jobs[3] c, workload.flops",
        "jobs[3] c, hosts",  # an odd number for pairs
        "jobs[3] c, hosts[0]",  # held by b
        "jobs[3] c, hosts[1]",  # held by a
        "jobs[3] c, hosts[2]",  # held by b
    }


def test_missing_keys_are_named(document: Document, refuse: Callable[[str], list[str]]) -> None:
    del document["name"], document["topology"]["kind"], document["jobs"][0]["gpus_per_host"]
    assert refuse(yaml.safe_dump(document)) == [
        "name: missing; this key is required",
        "topology.kind: missing; this key is required",
        "jobs[0] a, gpus_per_host: missing; this key is required",
    ]


def test_flows_are_not_blamed_for_hosts_that_are_missing(
    document: Document, refuse: Callable[[str], list[str]]
) -> None:
    del document["jobs"][0]["hosts"]
    flows = [{"source": "h0", "destination": "h2", "bytes": 1}]
    workload = {"type": "phases", "compute_s": 1, "comm_start": 1, "flows": flows}
    assert refuse(change(document, ("jobs", 0, "workload"), workload)) == [
        "jobs[0] a, gpus: expected exactly one of hosts and gpus"
    ]


def test_measure_and_warm_up_exclude_each_other(document: Document, refuse: Callable[[str], list[str]]) -> None:
    document |= {"warm_up_iterations": 1, "measure": {"from_s": 0, "to_s": 1}}
    assert refuse(yaml.safe_dump(document)) == ["measure: expected either measure or warm_up_iterations, not both"]


def test_repeated_keys_are_refused_with_path_and_line(document: Document, refuse: Callable[[str], list[str]]) -> None:
    text = yaml.safe_dump({"seed": 2}) + yaml.safe_dump(document, sort_keys=False) + "seed: 3\n"
    text = text.replace("name: a\n", "name: a\n  name: b\n")
    assert refuse(text) == [
        "jobs[0].name: expected once, repeated in line 12",
        f"seed: expected once, repeated in line {len(text.splitlines())}",
    ]


def test_graphs_must_hang_together(document: Document, refuse: Callable[[str], list[str]]) -> None:
    document["topology"] = {
        "kind": "graph",
        "hosts": ["h0", "h2", "h5"],
        "switches": ["s", "t"],
        "links": [{"ends": ["h0", "s"], "gbps": 1}, {"ends": ["h2", "t"], "gbps": 1}],
    }
    no_link, no_way = refuse(yaml.safe_dump(document))
    assert no_link == "topology.hosts[2]: expected a link to host 'h5', there is none"
    assert no_way.startswith("topology.links: expected a connected graph: switch ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [a", "line 2, column 1: invalid YAML: "),
        ("", "expected a mapping"),
        ("- name", "expected a mapping"),
        ("jobs: &all [*all]", "line 1, column 13: the alias *all stands for nothing that ends before it"),
        ("name: " + "[" * 5000, "line 1, column 107: expected at most 100 levels of nesting"),
        ("name: !!python/object:os.system x", "line 1, column 7: "),
        ("[a, b]: c", "line 1, column 1: "),
    ],
)
def test_what_is_not_a_scenario_at_all_is_refused(text: str, message: str, refuse: Callable[[str], list[str]]) -> None:
    assert any(line.startswith(message) for line in refuse(text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nowhere\.yaml: cannot be read"):
        load_scenario(tmp_path / "nowhere.yaml")


def test_null_means_absent(document: Document, tmp_path: Path) -> None:
    first = document["jobs"][0]
    asking = {key: value for key, value in first.items() if key != "hosts"}
    document["jobs"] = [
        {**first, "gpus": None, "placement": None, "duration_s": None},
        {**asking, "name": "b", "hosts": None, "gpus": 4, "placement": None, "arrival_s": 1000},
    ]
    document["events"] = [
        {"at_s": 1, "switch": "t0", "link": None, "host": None, "state": "down"},
        {"at_s": 2, "switch": "t0", "controller": None, "state": "up"},
    ]
    path = tmp_path / "nulls.yaml"
    path.write_text(yaml.safe_dump(document))
    assert [job.gpus for job in load_scenario(path).jobs] == [None, 4]


def test_nulls_hide_no_mistake(document: Document, refuse: Callable[[str], list[str]]) -> None:
    first = document["jobs"][0]
    workload = {**first["workload"], "pattern": "pairs"}
    document["jobs"] = [{**first, "hosts": ["h0", "h1", "h2"], "gpus": None, "workload": workload}]
    assert refuse(yaml.safe_dump(document)) == ["jobs[0] a, hosts: expected an even number of hosts for pairs, got 3"]


def test_problems_of_a_topology_name_the_file_that_holds_it(document: Document, tmp_path: Path) -> None:
    fabric, path = tmp_path / "fabric.yaml", tmp_path / "scenario.yaml"
    fabric.write_text(yaml.safe_dump({"topology": document["topology"]}))
    path.write_text(yaml.safe_dump(document | {"topology": "fabric.yaml"}))
    assert load_scenario(path) == Scenario.model_validate(document)
    fabric.write_text(yaml.safe_dump({"topology": document["topology"] | {"colour": "red"}}))
    path.write_text(yaml.safe_dump(document | {"topology": "fabric.yaml", "policy": 3}))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    beginnings = [message.split(": ")[:2] for message in raised.value.messages]
    assert beginnings == [[str(fabric), "topology.colour"], [str(path), "policy"]]
