"""The configuration for Stratum, read as protobuf's text format: each port once, with eight queues."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.topologies.tofino.cabled import tofino
from tests.topologies.tofino.drawing import drawn_ports
from topologies.tofino.stratum_qos import stratum_qos

_TOKEN = re.compile(r"#.*|(\w+):? *|([{}])\s*|\s+")


def _message(tokens: Iterator[str]) -> dict[str, list[Any]]:
    """Read fields up to the end of a message: values as text, messages as fields by name."""
    fields: dict[str, list[Any]] = {}
    for name in tokens:
        if name == "}":
            break
        value = next(tokens)
        fields.setdefault(name, []).append(_message(tokens) if value == "{" else value)
    return fields


def _tofino_config(text: str) -> dict[str, list[Any]]:
    found = list(_TOKEN.finditer(text))
    assert "".join(match[0] for match in found) == text
    (vendor,) = _message(match[1] or match[2] for match in found if match[1] or match[2])["vendor_config"]
    (config,) = vendor["tofino_config"]
    assert isinstance(config, dict)
    return config


@pytest.mark.parametrize("seed", range(5))
def test_every_port_appears_once_with_eight_queues(seed: int) -> None:
    ports = drawn_ports(Random(seed))
    config = _tofino_config(stratum_qos(tofino(ports, device_id=7), "leaf"))
    (node,) = config["node_id_to_qos_config"]
    assert node["key"] == ["7"]
    (qos,) = node["value"]
    numbers = sorted(str(number) for number, _ in ports)
    assert sorted(each["sdk_port"][0] for each in qos["ppg_configs"]) == numbers
    assert sorted(each["sdk_port"][0] for each in qos["queue_configs"]) == numbers
    for each in qos["queue_configs"]:
        queues = [(queue["queue_id"], queue["priority"]) for queue in each["queue_mapping"]]
        assert queues == [([str(level)], [f"PRIO_{level}"]) for level in range(8)]


def test_only_ports_with_slower_cables_are_shaped() -> None:
    config = _tofino_config(stratum_qos(tofino([(4, 100), (8, 30), (12, 2.5)]), "leaf"))
    (node,) = config["node_id_to_port_shaping_config"]
    shapes = {
        each["key"][0]: each["value"][0]["byte_shaping"][0]["rate_bps"]
        for each in node["value"][0]["per_port_shaping_configs"]
    }
    assert shapes == {"8": ["30000000000"], "12": ["2500000000"]}
    assert "node_id_to_port_shaping_config" not in _tofino_config(stratum_qos(tofino([(4, 100)]), "leaf"))


def test_a_name_stays_in_its_comment() -> None:
    text = stratum_qos(tofino([(4, 100)], names=[(4, "up\u2028}\nlink")]), "leaf")
    assert len(_tofino_config(text)["node_id_to_qos_config"]) == 1
    assert r"# up\u2028}\nlink" in text
