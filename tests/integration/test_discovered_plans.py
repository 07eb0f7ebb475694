"""A fabric that was discovered gives the Plans of its file, where that is in the order of the names."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
import yaml

import trainyard as ty
from controller.discovery.survey_file import survey_file
from policies.registry import policy_names
from tests.controller.discovery.surveyed import surveyed
from tests.topologies.made_up import made_up
from topologies.fabric_specification import FabricSpecification
from topologies.fat_tree import FatTreeSpecification
from topologies.names import NaturalKey, natural_key

REGULAR = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=200).build()
OTHER = made_up(REGULAR, Random(3))


def _by_name(node: dict[str, Any]) -> NaturalKey:
    return natural_key(node["name"])


def in_order(specification: FabricSpecification) -> FabricSpecification:
    """Return a fabric file with hosts, switches, and cables by their ends, in the order of the names; hosts first."""
    document = specification.model_dump(mode="json")
    hosts = {host["name"] for host in document["hosts"]}

    def key(end: str) -> tuple[bool, NaturalKey, NaturalKey]:
        node, _, port = end.partition(":")
        return node not in hosts, natural_key(node), natural_key(port)

    for cable in document["cables"]:
        cable["ends"] = sorted(cable["ends"], key=key)
    document["hosts"].sort(key=_by_name)
    document["switches"].sort(key=_by_name)
    document["cables"].sort(key=lambda cable: [key(end) for end in cable["ends"]])
    return FabricSpecification.model_validate(document)


def discovered() -> FabricSpecification:
    """Return what is discovered of the fabric where switches are listed anyhow, filled in with what nobody tells."""
    fabric = OTHER.specification.build()
    found = surveyed(fabric)
    switches = Random(4).sample(found.switches, len(found.switches))
    subnets = list(dict.fromkeys(nic.subnet for nic in fabric.nic_by_address.values()))
    text = survey_file(replace(found, switches=tuple(switches)), subnets)
    assert "# fill in" not in text
    document = yaml.safe_load(text)["topology"]
    told = OTHER.specification.model_dump(mode="json")
    document |= {key: value for key, value in told.items() if key not in ("hosts", "switches", "cables")}
    for kind, keys in (("hosts", ("gpus",)), ("switches", ("node_id",))):
        by_name = {node["name"]: node for node in told[kind]}
        for node in document[kind]:
            node |= {key: by_name[node["name"]][key] for key in keys if key in by_name[node["name"]]}
    return FabricSpecification.model_validate(document)


def test_the_fabric_is_that_of_its_file() -> None:
    one, same = in_order(OTHER.specification).build(), discovered().build()
    assert same.links == one.links
    assert same.nics == one.nics


@pytest.mark.parametrize("policy", policy_names())
def test_policies_decide_the_same(policy: str) -> None:
    hosts = [OTHER.names[host] for host in REGULAR.hosts]
    jobs = [
        {
            "name": name,
            "hosts": hosts[first::3],
            "gpus_per_host": 8,
            "iterations": 4,
            "workload": {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 8e9, "pattern": pattern},
        }
        for first, (name, pattern) in enumerate((("vision", "ring"), ("language", "all_to_all"), ("speech", "ring")))
    ]
    one, same = (
        ty.plan({"name": "three", "topology": topology.model_dump(mode="json"), "jobs": jobs}, policy).to_dict()
        for topology in (in_order(OTHER.specification), discovered())
    )
    assert same == one
