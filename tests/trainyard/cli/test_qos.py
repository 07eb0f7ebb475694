"""``trainyard qos``: what a switch is configured with, compared with a file."""

import json
from pathlib import Path

import pytest

from tests.trainyard.cli.conftest import Trainyard

GOLDEN = Path(__file__).parent / "golden"
FILE = GOLDEN / "mixed.yaml"


def test_the_configuration_is_that_of_the_golden_file(trainyard: Trainyard) -> None:
    result = trainyard("qos", "sonic", FILE)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (GOLDEN / "spine.sonic.json").read_text()


def test_every_dscp_of_a_class_has_the_queue_of_its_level(trainyard: Trainyard) -> None:
    tables = json.loads(trainyard("qos", "sonic", FILE, "spine").stdout)
    (classes,), (queues,) = tables["DSCP_TO_TC_MAP"].values(), tables["TC_TO_QUEUE_MAP"].values()
    assert [int(queues[classes[str(dscp)]]) for dscp in range(64)] == [dscp // 8 for dscp in range(64)]
    # A port without a cable is left as it is.
    assert tables["PORT_QOS_MAP"].keys() == {"Ethernet0", "Ethernet8"}
    assert {bound["scheduler"] for bound in tables["QUEUE"].values()} == tables["SCHEDULER"].keys()


def test_the_queues_of_an_open_vswitch_are_those_of_its_cables(trainyard: Trainyard) -> None:
    result = trainyard("qos", "ovs", FILE, "spine")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[-2] for line in lines if line.startswith("ovs-vsctl")] == ["Ethernet0", "Ethernet8"]
    assert sum("flowid" in line for line in lines) == 16
    assert "filter add dev Ethernet8 parent 1: protocol ip prio 8 u32 match ip dsfield 0xe0 0xe0 flowid 1:17" in lines


def test_what_cannot_be_configured_is_named(trainyard: Trainyard) -> None:
    for system, switch, problem in (
        ("sonic", "leaf", "switch leaf: port 1 has no name; SONiC knows ports by names"),
        ("ovs", "leaf", "switch leaf: port 1 has no name; Open vSwitch knows ports by names"),
        ("sonic", "root", "no switch is named 'root'; expected one of leaf, spine"),
    ):
        result = trainyard("qos", system, FILE, switch)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith(f"mixed.yaml: {problem}\n")


def test_a_switch_is_named_where_none_or_several_are_ordinary(trainyard: Trainyard, tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(FILE.read_text().replace("dscp_only", "ours"))
    result = trainyard("qos", "sonic", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("name a switch; control is dscp_only at none\n")


@pytest.mark.parametrize("system", ["stratum", "sde"])
def test_the_queues_of_a_tofino_are_those_of_the_golden_file(trainyard: Trainyard, system: str) -> None:
    for arguments in ((), ("leaf",)):
        result = trainyard("qos", system, GOLDEN / "tofino.yaml", *arguments)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == (GOLDEN / f"leaf.{system}.txt").read_text()


@pytest.mark.parametrize("system", ["stratum", "sde"])
def test_what_a_tofino_does_not_have_is_named(trainyard: Trainyard, system: str, tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    text = (GOLDEN / "tofino.yaml").read_text()
    for wanted, problem in (
        (
            "name: 1/0, number: 133",
            "switch leaf: port 1/0 (number 133): 100 Gbit/s takes 4 lanes, so expected a number",
        ),
        ("name: 1/0, number: 192", "switch leaf: port 1/0 (number 192): Tofino has queues for cables only at the num"),
        ("name: 1/0, number: 132, gbps: 400", "switch leaf: port 1/0 (number 132): its cable has 400 Gbit/s, a port"),
    ):
        changed = text.replace("name: 1/0, number: 132", wanted)
        file.write_text(changed.replace('leaf:1/0"], gbps: 100', 'leaf:1/0"]') if "gbps" in wanted else changed)
        result = trainyard("qos", system, file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"fabric.yaml: {problem}" in result.stderr


def test_a_tofino_is_named_where_none_or_several_are_ours(trainyard: Trainyard, tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    for control, named in (("ours", "leaf, spine"), ("dscp_only", "none")):
        text = FILE.read_text().replace("dscp_only", control)
        file.write_text(text.replace("p4runtime: 127.0.0.1:9559", f"control: {control}"))
        result = trainyard("qos", "sde", file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith(f"name a switch; control is ours at {named}\n")
