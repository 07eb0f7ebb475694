"""What a fabric file says of the targets of its switches, and how their hashes follow from it."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from tests.topologies.builders import TOPOLOGY, refusals
from tests.topologies.mixing import with_tofinos
from topologies.addressing import FIRST_SOURCE_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import MultipliedHash, TabulatedHash, flow_crc, hash_multipliers
from topologies.expanding import expanded, fabric_file
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.steering import steered_five_tuple
from topologies.targets import Target

PAIR: dict[str, Any] = yaml.safe_load(
    """
    kind: fabric
    hosts:
      - {name: h0, nics: [{name: p0, address: 10.0.0.1/24}]}
      - {name: h1, nics: [{name: p0, address: 10.0.1.1/24}]}
    switches:
      - name: one
        p4runtime: "127.0.0.1:1"
        device_id: 0
        target: tofino
        ports: [{name: e1, number: 132}, {name: e2, number: 192}, {name: e3, number: 140}]
      - {name: two, p4runtime: "127.0.0.1:2"}
    cables:
      - {ends: ["h0:p0", "one:e1"], gbps: 100}
      - {ends: ["h1:p0", "two:192"], gbps: 100}
      - {ends: ["one:e3", "two:1"], gbps: 100}
    """
)


def test_a_switch_is_a_bmv2_unless_it_says_otherwise() -> None:
    fabric = TOPOLOGY.validate_python(PAIR).build()
    assert fabric.device_ids == {"one": 0, "two": 1}
    assert {name: each.target for name, each in fabric.identity.items()} == {"one": Target.TOFINO, "two": Target.BMV2}
    routing = Routing(fabric, {"one": 5, "two": 7})
    assert routing.hashes == {"one": TabulatedHash(5), "two": MultipliedHash(7)}
    assert routing.without(frozenset({0, 1})).hashes is routing.hashes


def test_targets_stay_once_written_out() -> None:
    fabric = TOPOLOGY.validate_python(PAIR).build()
    written = fabric_file(expanded(fabric))
    assert written.count("target: tofino") == written.count("target") == 1
    assert TOPOLOGY.validate_python(yaml.safe_load(written)["topology"]).build().identity == fabric.identity


@pytest.mark.parametrize(
    ("changes", "place", "problem"),
    [
        ({"target": "tofino3"}, ("switches", 0, "target"), "Input should be 'bmv2', 'emulator' or 'tofino'"),
        (
            {"control": "dscp_only"},
            ("switches", 0),
            "Value error, expected no target where control is dscp_only, there is tofino",
        ),
    ],
)
def test_targets_that_cannot_be_are_refused(changes: dict[str, Any], place: Any, problem: str) -> None:
    document = deepcopy(PAIR)
    document["switches"][0] |= changes
    assert refusals(document)[place] == problem


def test_a_target_beside_openflow_is_refused() -> None:
    document = deepcopy(PAIR)
    document["switches"][1] = {"name": "two", "openflow": {"datapath_id": 1}, "target": "bmv2"}
    assert "there is target beside it" in refusals(document)["switches", 1]


def test_a_cable_at_the_port_to_the_cpu_is_refused() -> None:
    document = deepcopy(PAIR)
    document["cables"][0]["ends"][1] = "one:e2"
    assert refusals(document) == {("cables", 0, "ends", 1): "expected another port than 192, that of the CPU"}
    document = deepcopy(PAIR)
    document["switches"][1]["target"] = "tofino"
    assert refusals(document) == {("cables", 1, "ends", 1): "expected another port than 192, that of the CPU"}


@pytest.mark.parametrize("seed", range(5))
def test_the_hash_follows_the_port_along_every_path_through_both_targets(seed: int) -> None:
    clos = ClosSpecification(
        kind="clos", tors=3, aggs=3, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    fabric = with_tofinos(clos, {"t0", "a1"})
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    source, destination = fabric.nics["h0"][0], fabric.nics["h5"][0]
    first = FiveTuple(source.address, destination.address, UDP_PROTOCOL, FIRST_SOURCE_PORT, 4791)
    plain = Routing(clos, hash_multipliers(clos.switches, seed))
    for path in routing.candidate_paths(source, destination):
        found = steered_five_tuple(first, path, routing, taken=())
        assert found is not None
        assert routing.hashed_path(found) == path
        links = routing.next_links("t1", fabric.nics["h0"][0])
        assert routing.hashed_link("t1", flow_crc(found), links) == plain.hashed_link("t1", flow_crc(found), links)
