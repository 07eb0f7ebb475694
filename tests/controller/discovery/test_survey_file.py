"""A survey that has found everything is written as the fabric that was surveyed; what is left has a comment."""

from random import Random
from typing import Any

import pytest
import yaml

from controller.discovery.survey import Survey, SurveyedHost, SurveyedPort, SurveyedSwitch
from controller.discovery.survey_file import survey_file
from tests.controller.discovery.surveyed import surveyed
from tests.topologies.renumbering import renumbered
from topologies.addressing import Address, MacAddress, Prefix
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.specification import FatTreeSpecification

FAT_TREE = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=400)


def ends(fabric: Fabric) -> set[tuple[frozenset[tuple[str, str | int]], float]]:
    """The cables: the names of their ends, and their rates."""

    def named(node: str, port: int) -> tuple[str, str | int]:
        if node in fabric.host_index:
            return node, fabric.nics[node][port].name
        return node, port

    return {
        (
            frozenset((named(link.source, link.source_port), named(link.destination, link.destination_port))),
            link.rate_bps,
        )
        for link in fabric.links
    }


def read(text: str) -> Any:
    return yaml.safe_load(text)["topology"]


@pytest.mark.parametrize("seed", range(5))
def test_a_fabric_with_made_up_names_and_numbers_is_written_as_it_is(seed: int) -> None:
    fabric = renumbered(FAT_TREE.build(), Random(seed))
    subnets = list(dict.fromkeys(nic.subnet for nic in fabric.nic_by_address.values()))
    text = survey_file(surveyed(fabric), subnets)
    assert "#" not in text
    found = FabricSpecification.model_validate(read(text)).build()
    assert ends(found) == ends(fabric)
    assert found.identity.keys() == fabric.identity.keys()
    assert {(nic.host, nic.name, nic.address, nic.mac, nic.subnet) for nic in found.nic_by_address.values()} == {
        (nic.host, nic.name, nic.address, nic.mac, nic.subnet) for nic in fabric.nic_by_address.values()
    }


def test_what_is_left_to_fill_in_has_a_comment() -> None:
    ports = {number: SurveyedPort(f"Ethernet{number}", True) for number in (1, 2, 3, 4)}
    switches = (SurveyedSwitch("leaf", "127.0.0.1:9000", 1, None, ports),)
    address, mac = Address.parse("192.168.7.11"), MacAddress.parse("b8:59:9f:00:00:01")
    hosts = {
        ("leaf", 1): SurveyedHost(mac=mac, addresses=(address, Address.parse("192.168.7.20"))),
        ("leaf", 2): SurveyedHost(name="gpu-2", nic="ens1"),
    }
    text = survey_file(Survey(switches, {("leaf", 3): ("leaf", 1)}, hosts), [Prefix.around(address, 26)])
    for line in (
        '- name: "host-1"  # fill in: it says no name',
        '- {name: "nic0", address: 192.168.7.11/26, mac: "b8:59:9f:00:00:01"}'
        "  # fill in: its name; or one of 192.168.7.20",
        '- {name: "ens1"}  # fill in: address, with the length of its prefix',
        '- {name: "Ethernet4", number: 4}  # up, and nobody was heard here',
        '- {ends: ["host-1:nic0", "leaf:Ethernet1"]}  # fill in: gbps',
        "# leaf:Ethernet3 hears leaf:Ethernet1, which hears another or nothing",
    ):
        assert line in text
    assert read(text)["kind"] == "fabric"


def test_names_that_hosts_say_break_no_file() -> None:
    ports = {number: SurveyedPort(str(number), True) for number in range(1, 6)}
    switches = (SurveyedSwitch("leaf", "127.0.0.1:9000", 1, None, ports),)
    names = ("a: b", "leaf", "../x", '"}\\n#', "- {")
    hosts = {("leaf", number): SurveyedHost(name, f'"{name}') for number, name in enumerate(names, 1)}
    document = read(survey_file(Survey(switches, {}, hosts)))
    assert len(document["hosts"]) == len(names)
    assert len(document["cables"]) == len(names)


def test_a_file_is_the_same_in_whatever_order_things_are_listed_and_found() -> None:
    random = Random(1)
    whole = surveyed(renumbered(FAT_TREE.build(), random))
    texts = set()
    for _ in range(3):
        switches = random.sample(whole.switches, len(whole.switches))
        heard, hosts = list(whole.heard.items()), list(whole.hosts.items())
        random.shuffle(heard)
        random.shuffle(hosts)
        texts.add(survey_file(Survey(tuple(switches), dict(heard), dict(hosts))))
    (text,) = texts
    names = [host["name"] for host in read(text)["hosts"]]
    assert names == [f"h{number}" for number in range(16)]
    assert [cable["ends"][0].partition(":")[0] for cable in read(text)["cables"][:16]] == names


def test_nics_of_a_host_are_in_the_order_of_their_names_wherever_they_are() -> None:
    ports = {number: SurveyedPort(f"Ethernet{number}", True) for number in (1, 2, 3)}
    switches = tuple(SurveyedSwitch(name, "127.0.0.1:9000", 1, None, ports) for name in ("leaf-10", "leaf-9"))
    hosts = {
        ("leaf-9", 1): SurveyedHost("gpu", "ens10"),
        ("leaf-9", 2): SurveyedHost("gpu"),
        ("leaf-10", 3): SurveyedHost("gpu", "ens9"),
    }
    document = read(survey_file(Survey(switches, {}, hosts)))
    assert [switch["name"] for switch in document["switches"]] == ["leaf-9", "leaf-10"]
    assert [nic["name"] for nic in document["hosts"][0]["nics"]] == ["ens9", "ens10", "nic2"]
    assert [cable["ends"] for cable in document["cables"]] == [
        ["gpu:ens9", "leaf-10:Ethernet3"],
        ["gpu:ens10", "leaf-9:Ethernet1"],
        ["gpu:nic2", "leaf-9:Ethernet2"],
    ]
