"""The configuration refuses unknown and wrong keys, and a file is refused with all its problems at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from controller.access.tls_files import ServerTls
from controller.config import ConfigError, ControllerConfig, load_config
from policies.registry import policy_names
from tests.certificates import Authority

Document = dict[str, object]


def _config(**changes: Any) -> dict[str, Any]:
    topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
    switches = [{"name": name, "address": "127.0.0.1:1", "device_id": 1} for name in ("t0", "t1")]
    return {"topology": topology, "switches": switches} | changes


def test_defaults_leave_room_for_other_controllers_below() -> None:
    assert ControllerConfig.model_validate(_config()).election_id > 1 << 64


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"leases": 3}, "leases"),
        ({"clock": "driven"}, "clock"),
        ({"policy_time_limit_s": 0}, "policy_time_limit_s"),
        ({"policy": "best"}, "policy"),
        ({"lease_s": 0}, "lease_s"),
        ({"hash": "md5"}, "hash"),
        ({"base_routing": "theirs"}, "base_routing"),
        ({"base_routing": "other", "read_back_s": None}, "base_routing: other needs read_back_s"),
        ({"base_routing": "other", "discovery": True}, "discovery: not with base_routing: other"),
        ({"switches": [{"name": "t0", "address": "localhost:1"}]}, "no address for t1"),
        (
            {"switches": [{"name": name, "address": "localhost:1"} for name in ("t0", "t1", "t2")]},
            "not in the topology: t2",
        ),
        ({"switches": [{"name": name, "address": "localhost:1"} for name in ("t0", "t1", "t1")]}, "listed twice"),
    ],
)
def test_wrong_configuration_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        ControllerConfig.model_validate(_config(**changes))


def test_ordinary_switches_need_no_address_and_may_have_none() -> None:
    topology = {
        "kind": "fabric",
        "hosts": [
            {"name": f"gpu-{number}", "nics": [{"name": "ens1", "address": f"192.168.7.{number}/26"}]}
            for number in (1, 2)
        ],
        "switches": [
            {"name": "leaf", "p4runtime": "127.0.0.1:9559"},
            {"name": "spine", "control": "dscp_only"},
        ],
        "cables": [
            {"ends": ends, "gbps": 100}
            for ends in (["gpu-1:ens1", "leaf:1"], ["leaf:2", "spine:1"], ["spine:2", "gpu-2:ens1"])
        ],
    }
    config = ControllerConfig.model_validate({"topology": topology})
    assert [switch.name for switch in config.switch_addresses] == ["leaf"]
    listed = {"topology": topology, "switches": [{"name": "leaf", "address": "127.0.0.1:1"}]}
    assert [switch.address for switch in ControllerConfig.model_validate(listed).switch_addresses] == ["127.0.0.1:1"]
    listed["switches"] = [{"name": name, "address": "127.0.0.1:1"} for name in ("leaf", "spine")]
    with pytest.raises(ValidationError, match="control is dscp_only, so nothing is written there: spine"):
        ControllerConfig.model_validate(listed)


@pytest.fixture
def document() -> Document:
    return {
        "topology": {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100},
        "switches": [{"name": name, "address": "127.0.0.1:9559"} for name in ("t0", "t1")],
        "policy": "ecmp",
    }


def _problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return [message.removeprefix(f"{path}: ") for message in caught.value.messages]


def test_a_valid_file_is_read(tmp_path: Path, document: Document) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(document))
    config = load_config(path)
    assert config.policy == "ecmp"
    assert [switch.name for switch in config.switch_addresses] == ["t0", "t1"]


def test_all_problems_are_listed_with_their_keys(tmp_path: Path, document: Document) -> None:
    document |= {
        "topology": {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": -1, "bottleneck_gbps": 100},
        "switches": [{"name": "t0"}, {"name": "t1", "address": "x", "port": 3}],
        "policy": "magic",
        "colour": "red",
    }
    problems = _problems(tmp_path / "controller.yaml", yaml.safe_dump(document))
    assert problems == [
        "topology.host_link_gbps: expected greater than 0, got -1",
        "switches[0] t0: expected address, where the switch serves P4Runtime, or openflow",
        "switches[1] t1, address: expected HOST:PORT with a port from 1 to 65535, got 'x'",
        "switches[1] t1, port: unknown key; expected one of address, device_id, gnmi, name, openflow",
        f"policy: expected one of {', '.join(policy_names())}, or module:attribute, got 'magic'",
        f"colour: unknown key; expected one of {', '.join(sorted(ControllerConfig.model_fields))}",
    ]


@pytest.mark.parametrize(
    "address", ["", "nonsense", "127.0.0.1:119559", "127.0.0.1:", ":4790", "a b:1", "::1:4790", "h:1\n", "[::1]4790"]
)
def test_an_invalid_address_is_refused_with_its_key(tmp_path: Path, document: Document, address: str) -> None:
    document |= {"listen": address}
    document["switches"] = [{"name": "t0", "address": address}, {"name": "t1", "address": "h:9559"}]
    problems = _problems(tmp_path / "controller.yaml", yaml.safe_dump(document))
    assert problems == [
        f"listen: expected HOST:PORT with a port from 0 to 65535, or unix:/PATH, got {address!r}",
        f"switches[0] t0, address: expected HOST:PORT with a port from 1 to 65535, got {address!r}",
    ]


def test_only_a_listener_may_leave_its_port_open(tmp_path: Path, document: Document) -> None:
    document |= {"listen": "127.0.0.1:0"}
    document["switches"] = [{"name": "t0", "address": "127.0.0.1:0"}, {"name": "t1", "address": "127.0.0.1:9559"}]
    problems = _problems(tmp_path / "controller.yaml", yaml.safe_dump(document))
    assert problems == ["switches[0] t0, address: expected HOST:PORT with a port from 1 to 65535, got '127.0.0.1:0'"]


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:4790", "rack-1.example.org:65535"])
def test_names_and_addresses_of_both_families_are_taken(tmp_path: Path, document: Document, address: str) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(document | {"listen": address, "insecure": True}))
    assert load_config(path).listen == address


@pytest.mark.parametrize("address", ["0.0.0.0:4790", "[::]:4790", "10.0.0.1:4790", "controller:4790"])
def test_an_address_on_the_network_needs_tls_or_a_word(tmp_path: Path, document: Document, address: str) -> None:
    document["listen"] = address
    (problem,) = _problems(tmp_path / "controller.yaml", yaml.safe_dump(document))
    assert problem.startswith(f"listen: {address} can be reached from the network: set tls")


def test_a_unix_socket_is_a_listener_but_no_switch(tmp_path: Path, document: Document) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(document | {"listen": "unix:/run/trainyard.sock"}))
    assert load_config(path).listen == "unix:/run/trainyard.sock"
    document["switches"] = [{"name": "t0", "address": "unix:/run/t0"}, {"name": "t1", "address": "127.0.0.1:9559"}]
    problems = _problems(path, yaml.safe_dump(document | {"listen": "unix:trainyard.sock"}))
    assert [problem.partition(" after unix:")[0] for problem in problems] == [
        "listen: expected an absolute path",
        "switches[0] t0, address: expected HOST:PORT with a port from 1 to 65535, got 'unix:/run/t0'",
    ]


def test_a_unix_socket_has_no_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("controller")
    tls = ServerTls(certificate=certificate, key=key, ca=authority.ca)
    with pytest.raises(ValidationError, match="tls: not possible at unix:/run/socket"):
        ControllerConfig.model_validate(_config(listen="unix:/run/socket", tls=tls))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tls": {"certificate": "c.pem", "key": "c.key"}}, "tls: certificate: c.pem: cannot be read"),
        ({"tokens": "tokens.yaml", "agents": True}, "agents: has no meaning where callers have identities"),
    ],
)
def test_contradictions_about_callers_are_refused(
    tmp_path: Path, document: Document, keys: Document, said: str
) -> None:
    (problem,) = _problems(tmp_path / "controller.yaml", yaml.safe_dump(document | keys))
    assert problem.startswith(said)


def test_problems_of_the_whole_file_are_listed_too(tmp_path: Path, document: Document) -> None:
    document["switches"] = [{"name": "t0", "address": "127.0.0.1:9559"}]
    assert _problems(tmp_path / "controller.yaml", yaml.safe_dump(document)) == ["switches: no address for t1"]


@pytest.mark.parametrize(("text", "said"), [("a: [", "invalid YAML"), ("- 1", "expected a mapping")])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = _problems(tmp_path / "controller.yaml", text)
    assert said in problem


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        load_config(tmp_path / "nowhere.yaml")


def test_the_topology_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    path, fabric = tmp_path / "controller.yaml", tmp_path / "rack.yaml"
    path.write_text(yaml.safe_dump(_config(topology="rack.yaml")))
    fabric.write_text(yaml.safe_dump({"topology": _config()["topology"]}))
    assert load_config(path).topology.kind == "dumbbell"
    fabric.write_text(yaml.safe_dump({"topology": _config()["topology"] | {"hosts_per_side": 0}}))
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert [message.split(": ")[:2] for message in raised.value.messages] == [[str(fabric), "topology.hosts_per_side"]]


def test_a_fabric_file_says_where_switches_are(tmp_path: Path) -> None:
    nics = [{"name": "ens1", "address": "192.168.7.11/24"}]
    leaf = {"name": "leaf", "p4runtime": "127.0.0.1:9559", "gnmi": "127.0.0.1:9339", "device_id": 7}
    topology = {
        "kind": "fabric",
        "hosts": [{"name": "gpu-1", "nics": nics}],
        "switches": [leaf],
        "cables": [{"ends": ["gpu-1:ens1", "leaf:1"], "gbps": 100}],
    }
    file = tmp_path / "controller.yaml"
    file.write_text(yaml.safe_dump({"topology": topology}))
    (switch,) = load_config(file).switch_addresses
    assert (switch.name, switch.address, switch.gnmi, switch.device_id) == (
        "leaf",
        *(leaf[key] for key in ("p4runtime", "gnmi", "device_id")),
    )
    del leaf["p4runtime"]
    (problem,) = _problems(file, yaml.safe_dump({"topology": topology}))
    assert problem == "switches: no address for leaf: the topology has neither p4runtime nor openflow of them"


def test_an_unknown_level_of_the_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(
        "topology: {kind: dumbbell, hosts_per_side: 1, host_link_gbps: 1, bottleneck_gbps: 1}\n"
        "switches: [{name: t0, address: 'localhost:1'}, {name: t1, address: 'localhost:2'}]\n"
        "log: {level: loud}\n"
    )
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert len(error.value.messages) == 1
    assert "log.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'" in error.value.messages[0]
