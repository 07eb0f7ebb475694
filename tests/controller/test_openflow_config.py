"""Switches that speak OpenFlow in a configuration, and in a fabric file: what is taken, and what is refused by name."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller.config import ControllerConfig
from topologies.ecmp import FabricHash
from topologies.fabric_parts import SwitchSpecification
from topologies.openflow_specification import OpenFlowSpecification, Queues

PLAIN = {"name": "t1", "address": "127.0.0.1:1"}
LISTEN = {"listen": "127.0.0.1:0"}


def _config(first: dict[str, Any], second: dict[str, Any] = PLAIN, **changes: Any) -> ControllerConfig:
    topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
    document = {"topology": topology, "switches": [first, second], "openflow": LISTEN}
    return ControllerConfig.model_validate(document | changes)


def _openflow(**keys: Any) -> dict[str, Any]:
    return {"name": "t0", "openflow": keys}


def test_a_mixed_fabric_has_an_unknown_hash() -> None:
    config = _config(_openflow(datapath_id="0x1", ovsdb="unix:/run/db.sock", queues="set_queue"))
    (found,) = config.openflow_addresses
    assert found.openflow == OpenFlowSpecification(datapath_id=1, ovsdb="unix:/run/db.sock", queues=Queues.SET_QUEUE)
    assert (found.place, found.device) == ("datapath 0x1", 1)
    assert [each.name for each in config.p4runtime_addresses] == ["t1"]
    assert config.hash is FabricHash.UNKNOWN
    assert _config({"name": "t0", "address": "127.0.0.1:2"}).hash is FabricHash.KNOWN


def test_a_datapath_id_has_hexadecimal_digits() -> None:
    ids = [OpenFlowSpecification.model_validate({"datapath_id": given}).datapath_id for given in ("0x1F", "00ff", 31)]
    assert ids == [31, 255, 31]


@pytest.mark.parametrize(
    ("first", "changes", "named"),
    [
        (_openflow(), {}, "datapath_id"),
        (_openflow(datapath_id="0x0"), {}, "datapath_id"),
        (_openflow(datapath_id="t0"), {}, "expected a datapath id: up to 16 hexadecimal digits"),
        (_openflow(datapath_id="0x1", queue="dscp"), {}, "queue"),
        (_openflow(datapath_id="0x1", connect="here"), {}, "expected HOST:PORT"),
        (_openflow(datapath_id="0x1", ovsdb="ssl:here:1"), {}, "expected unix:PATH or tcp:HOST:PORT"),
        ({"name": "t0"}, {}, "expected address, where the switch serves P4Runtime, or openflow"),
        (
            _openflow(datapath_id="0x1") | {"address": "127.0.0.1:2"},
            {},
            "expected openflow alone, there is address beside it",
        ),
        (_openflow(datapath_id="0x1"), {"hash": "known"}, "hash: known is not possible .*: t0"),
        (_openflow(datapath_id="0x1"), {"base_routing": "other"}, "base_routing: other is not possible .*: t0"),
        (_openflow(datapath_id="0x1"), {"openflow": {}}, "openflow: 0.0.0.0:6653 can be reached from the network"),
        (
            _openflow(datapath_id="0x1", connect="leaf.example:6653"),
            {},
            "t0 is reached over the network: set openflow.tls",
        ),
    ],
)
def test_wrong_keys_are_refused_by_name(first: dict[str, Any], changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        _config(first, **changes)


def test_two_switches_with_one_datapath_id_are_refused() -> None:
    same = {"datapath_id": "0x1"}
    with pytest.raises(ValidationError, match="the datapath id 0x1 is listed twice"):
        _config({"name": "t0", "openflow": same}, {"name": "t1", "openflow": same})


def test_a_switch_of_a_fabric_file_speaks_one_protocol() -> None:
    switch = {"name": "leaf", "openflow": {"datapath_id": "0x1"}}
    assert SwitchSpecification.model_validate(switch).openflow == OpenFlowSpecification(datapath_id=1)
    with pytest.raises(ValidationError, match="expected openflow alone, there is gnmi, p4runtime beside it"):
        SwitchSpecification.model_validate({**switch, "p4runtime": "leaf:1", "gnmi": "leaf:2"})


def test_a_certificate_is_checked_where_there_is_one() -> None:
    switch = _openflow(datapath_id=1, certificate_name="leaf1.example")
    with pytest.raises(ValidationError, match=r"switches: t0 has a certificate_name: set openflow\.tls"):
        _config(switch, insecure=True)
    with pytest.raises(ValidationError, match="certificate_name"):
        OpenFlowSpecification.model_validate({"datapath_id": 1, "certificate_name": "two words"})
