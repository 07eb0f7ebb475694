import time
from copy import deepcopy
from itertools import permutations
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.builders import TOPOLOGY, fabrics, refusals
from tests.topologies.renumbering import renumbered
from topologies.addressing import Address, MacAddress, Prefix
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded, fabric_file
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.fat_tree import FatTreeSpecification
from topologies.routing import Routing

RACK: dict[str, Any] = yaml.safe_load(
    """
    kind: fabric
    gpus_per_host: 4
    delay_us: 2
    hosts:
      - name: gpu-1
        management: 10.9.0.1
        nics:
          - {name: ens1, address: 192.168.7.11/26, mac: "B8-59-9F-00-00-01"}
          - {name: ens2, address: 192.168.7.75/26}
      - {name: gpu-2, nics: [{name: p0, address: 192.168.7.12/26, gbps: 200}]}
    switches:
      - name: leaf
        p4runtime: leaf.example:9559
        node_id: 77
        ports:
          - {name: Ethernet1/1, number: 132, gbps: 100}
          - {name: Ethernet1/2, number: 8, breakout: {lanes: 2, gbps: 200}}
          - {name: spare, number: 500}
      - {name: spine, p4runtime: spine.example:9559, mac: "0c:42:a1:00:00:07"}
    cables:
      - {ends: ["gpu-1:ens1", "leaf:Ethernet1/1"]}
      - {ends: ["gpu-1:ens2", "spine:40"], gbps: 25, delay_us: 0.5}
      - {ends: ["leaf:Ethernet1/2/2", "gpu-2:p0"]}
      - {ends: ["leaf:Ethernet1/2/1", "spine:7"]}
    """
)


def rack(**changes: Any) -> dict[str, Any]:
    return deepcopy(RACK) | changes


def test_a_fabric_keeps_all_that_its_file_says() -> None:
    fabric = TOPOLOGY.validate_python(RACK).build()
    assert [nic.name for nic in fabric.nics["gpu-1"]] == ["ens1", "ens2"]
    assert fabric.nics["gpu-1"][0].address == Address.parse("192.168.7.11")
    assert fabric.nics["gpu-1"][0].mac == MacAddress.parse("b8:59:9f:00:00:01")
    assert fabric.nics["gpu-1"][1].mac is None
    assert fabric.nics["gpu-2"][0].subnet == Prefix(Address.parse("192.168.7.0"), 26)
    assert [(link.source_port, link.destination_port, link.rate_bps) for link in fabric.links[::2]] == [
        (0, 132, 100e9),
        (1, 40, 25e9),
        (9, 0, 200e9),
        (8, 7, 200e9),
    ]
    assert [cable.delay_s for cable in fabric.cables] == [2e-6, 0.5e-6, 2e-6, 2e-6]
    assert [fabric.identity[name].node_id for name in fabric.switches] == [77, 2]
    assert [fabric.identity[name].mac for name in fabric.switches] == [None, MacAddress.parse("0c:42:a1:00:00:07")]
    assert fabric.gpus_per_host == 4


@settings(max_examples=60, deadline=None)
@given(fabrics)
def test_fabrics_are_the_same_once_written_out(fabric: Fabric) -> None:
    written = fabric_file(expanded(fabric))
    same = TOPOLOGY.validate_python(yaml.safe_load(written)["topology"]).build()
    for attribute in ("hosts", "switches", "links", "nics", "identity", "gpus_per_host", "pcie"):
        assert getattr(same, attribute) == getattr(fabric, attribute), attribute


@pytest.mark.parametrize("rate_gbps", [400 / 3, 0.1, 123.456789, 1e-3])
def test_rates_and_delays_are_the_same_to_the_last_bit(rate_gbps: float) -> None:
    star = {"kind": "star", "hosts": 2, "host_link_gbps": rate_gbps, "delay_us": rate_gbps, "pcie": {"gbps": rate_gbps}}
    fabric = TOPOLOGY.validate_python(star).build()
    same = expanded(fabric).build()
    assert (same.links, same.pcie) == (fabric.links, fabric.pcie)


def test_a_fabric_file_is_the_same_once_written_out() -> None:
    specification = FabricSpecification.model_validate(RACK)
    fabric = specification.build()
    written = yaml.safe_load(fabric_file(specification))["topology"]
    assert FabricSpecification.model_validate(written) == specification
    again = expanded(fabric).build()
    assert (again.links, again.nics, again.identity) == (fabric.links, fabric.nics, fabric.identity)


def test_every_mistake_of_a_fabric_is_named_at_once() -> None:
    document = rack()
    hosts, switches, cables = document["hosts"], document["switches"], document["cables"]
    hosts[0]["nics"][1] |= {"address": "192.168.7.11/26", "mac": "b8:59:9f:00:00:01"}
    hosts[1]["management"] = "10.9.0.1"
    hosts += [
        {
            "name": "gpu-3",
            "nics": [{"name": "a", "address": "192.168.0.1/16"}, {"name": "a", "address": "10.0.0.1/24"}],
        },
        {"name": "gpu-4", "nics": [{"name": "a", "address": "fe80::1/64"}]},
        {"name": "gpu-5", "nics": [{"name": "a", "address": "10.0.1.0/24"}]},
        {"name": "gpu-6", "nics": []},
        {"name": "leaf", "nics": [{"name": "a", "address": "10.0.2.1/24"}]},
        {"name": "gpu-8", "nics": [{"name": "a", "address": "10.0.4.1/24"}]},
        {"name": "gpu:7", "nics": [{"name": "a", "address": "10.0.3.1/24", "mac": "01:00:5e:00:00:01"}]},
    ]
    switches[1] |= {
        "p4runtime": "leaf.example:9559",
        "node_id": 77,
        "ports": [
            {"name": "x", "number": 1},
            {"name": "x", "number": 2},
            {"name": "y", "number": 1},
            {"name": "z", "number": 509, "breakout": {"lanes": 2, "gbps": 1}},
        ],
    }
    cables[0]["gbps"] = 40
    cables[3] = {"ends": ["leaf:Ethernet1/1"]}
    cables += [
        {"ends": ["leaf:Ethernet1/1", "spine:w"]},
        {"ends": ["nobody:1", "spine:x"]},
        {"ends": ["leaf:spare", "leaf:Ethernet1/2/1"], "gbps": 200},
        {"ends": ["gpu-3:a", "gpu-1:ens1"], "gbps": 1},
        {"ends": ["spine:y", "gpu-8:a"]},
    ]
    assert refusals(document) == {
        ("hosts", 3, "nics", 0, "address"): "Value error, IPv6 is not supported: 'fe80::1'",
        ("hosts", 4, "nics", 0, "address"): (
            "Value error, expected the address of a NIC, this is that of its subnet or of all its NICs"
        ),
        ("hosts", 5, "nics"): "expected at least one NIC, there is none",
        ("hosts", 8, "name"): (
            "Value error, expected a name without a colon, which separates node and port in the ends of cables"
        ),
        ("hosts", 8, "nics", 0, "mac"): "Value error, expected the MAC address of one NIC: '01:00:5e:00:00:01'",
        ("hosts", 0, "nics", 1, "address"): "expected another address than that of hosts[0].nics[0].address",
        ("hosts", 0, "nics", 1, "mac"): "expected another MAC than that of hosts[0].nics[0].mac",
        ("hosts", 1, "management"): "expected another address than that of hosts[0].management",
        ("hosts", 2, "nics", 1, "name"): "expected another name than that of hosts[2].nics[0].name",
        ("hosts", 0, "nics", 0, "address"): (
            "expected a subnet apart from 192.168.0.0/16, which hosts[2].nics[0].address is in"
        ),
        ("switches", 0, "name"): "expected another name than that of hosts[6].name",
        ("switches", 1, "node_id"): "expected another node id than that of switches[0].node_id",
        ("switches", 1, "device_id"): "expected another device at this address than that of switches[0].device_id",
        ("switches", 1, "ports", 1, "name"): "expected another name than that of switches[1].ports[0].name",
        ("switches", 1, "ports", 2, "number"): "expected another number than that of switches[1].ports[0].number",
        ("switches", 1, "ports", 3, "breakout"): "expected ports up to 509",
        ("cables", 0): "expected one speed, this cable has 40 Gbit/s, leaf:Ethernet1/1 has 100 Gbit/s",
        ("cables", 1, "ends", 1): "expected a port of 'spine'",
        ("cables", 3, "ends", 1): "Field required",
        ("cables", 4, "ends", 0): "expected a port that cables[0] has not taken",
        ("cables", 4, "ends", 1): "expected a port of 'spine'",
        ("cables", 5, "ends", 0): "expected a host or switch of the topology",
        ("cables", 6, "ends", 1): "expected another node than that of the first end",
        ("cables", 7, "ends", 1): "expected a port that cables[0] has not taken",
        ("cables", 8, "gbps"): "missing; neither the cable nor a port at its ends says how fast it is",
    }


def test_what_is_right_of_a_wrong_host_or_switch_is_checked_too() -> None:
    document = rack()
    document["hosts"][0]["nics"][0]["mac"] = "no MAC"
    document["hosts"][0]["nics"][1]["address"] = "192.168.7.12/26"
    document["hosts"][0]["colour"] = "red"
    document["switches"][0]["ports"][0]["number"] = 0
    document["switches"][0]["ports"][2]["name"] = "Ethernet1/2/1"
    del document["cables"][1]
    assert refusals(document) == {
        ("hosts", 0, "nics", 0, "mac"): "Value error, expected a MAC address like 02:00:00:00:00:01: 'no MAC'",
        ("hosts", 0, "colour"): "Extra inputs are not permitted",
        ("hosts", 0, "nics", 1): "expected a cable at gpu-1:ens2, there is none",
        ("hosts", 1, "nics", 0, "address"): "expected another address than that of hosts[0].nics[1].address",
        ("switches", 0, "ports", 0, "number"): "Input should be greater than or equal to 1",
        ("switches", 0, "ports", 2, "name"): "expected another name than that of switches[0].ports[1].name",
    }


@pytest.mark.parametrize(
    ("key", "items", "place"),
    [
        ("hosts", ["gpu-1", None], ("hosts", 0)),
        ("switches", [None, 5], ("switches", 0)),
        ("cables", ["a:1 - b:2"], ("cables", 0)),
        ("switches", [{"name": ["leaf"]}], ("switches", 0, "name")),
        ("hosts", [{"name": {"a": "b"}, "nics": {"x": 1}}], ("hosts", 0, "name")),
        ("hosts", {"gpu-1": {}}, ("hosts",)),
        ("hosts", [{"name": "a", "nics": ["ens1"]}], ("hosts", 0, "nics", 0)),
    ],
)
def test_parts_of_another_shape_are_named(key: str, items: Any, place: tuple[str | int, ...]) -> None:
    assert place in refusals(rack(**{key: items}))


def test_a_wrong_value_of_a_cable_is_one_mistake() -> None:
    document = rack()
    document["cables"][1] = {"ends": ["gpu-1:ens2", "spine:40"], "gbps": "100G"}
    assert list(refusals(document)) == [("cables", 1, "gbps")]
    document["cables"][1] = {"ends": ["gpu-1 ens2", "spine:40"], "gbps": 1}
    assert refusals(document) == {("cables", 1, "ends", 0): "Value error, expected NODE:PORT"}


@pytest.mark.parametrize("server", ["leaf:99999", "leaf", "leaf:\u0664\u0664", "le af:1", ":9559", "leaf:0"])
def test_servers_without_a_port_are_refused(server: str) -> None:
    document = rack()
    document["switches"][0]["p4runtime"] = server
    message = "Value error, expected HOST:PORT with a port from 1 to 65535"
    assert refusals(document) == {("switches", 0, "p4runtime"): message}


def test_nics_without_a_cable_and_switches_apart_are_named() -> None:
    document = rack()
    del document["cables"][1]
    assert refusals(document) == {("hosts", 0, "nics", 1): "expected a cable at gpu-1:ens2, there is none"}
    document = rack()
    del document["cables"][3]
    reason = "expected a connected fabric: switch 'spine' has no path to switch 'leaf'"
    assert refusals(document) == {("switches", 1): reason}


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "10.0.0.1/33", "10.0.0.1/x", "10.0.0/24", "127.0.0.1/8", "224.0.0.1/24", "0.0.0.1/8", 7]
)
def test_addresses_that_no_nic_has_are_refused(address: Any) -> None:
    document = rack()
    document["hosts"][1]["nics"][0]["address"] = address
    assert list(refusals(document)) == [("hosts", 1, "nics", 0, "address")]


def test_ten_thousand_mistakes_take_seconds() -> None:
    number = 10_000
    document = rack()
    document["hosts"] += [
        {"name": f"h{n % 100}", "nics": [{"name": "a", "address": "192.168.7.11/26", "mac": "02:00:00:00:00:01"}]}
        for n in range(number)
    ]
    document["switches"] += [
        {"name": f"s{n}", "node_id": 5, "ports": [{"name": "a", "number": 1}]} for n in range(number)
    ]
    document["cables"] += [{"ends": ["h1:a", f"s{n}:b"]} for n in range(number)]
    document["cables"] += [{"ends": [f"h{n % 100}:a", "leaf:spare"], "gbps": 1} for n in range(number)]
    begun_s = time.process_time()
    assert len(refusals(document)) >= 3 * number
    assert time.process_time() - begun_s < 60


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_any_addresses_and_ports_give_the_paths_of_the_regular_fabric(random: Random) -> None:
    """Candidate paths pass the same nodes in the same order, whatever NICs and ports are called and numbered."""
    regular = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
    made_up = renumbered(regular, random)
    one, other = (Routing(each, hash_multipliers(each.switches, 1)) for each in (regular, made_up))
    for source, destination in permutations(random.sample(regular.hosts, 4), 2):
        expected = [
            regular.nodes_of(path)
            for path in one.candidate_paths(regular.nics[source][0], regular.nics[destination][0])
        ]
        found = [
            made_up.nodes_of(path)
            for path in other.candidate_paths(made_up.nics[source][0], made_up.nics[destination][0])
        ]
        assert found == expected
