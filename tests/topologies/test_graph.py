from typing import Any

import pytest

from tests.topologies.builders import TOPOLOGY, neighbours, refusals
from topologies.specification import GraphSpecification


def graph(*ends: Any, hosts: Any = ("h0", "h1"), switches: Any = ("s0", "s1"), **more: Any) -> dict[str, Any]:
    links = [{"ends": pair, "gbps": 100} for pair in ends]
    return {"kind": "graph", "hosts": hosts, "switches": switches, "links": links, **more}


def test_graph_keeps_names_order_rates_and_delays() -> None:
    document = graph(["gpu-a", "leaf"], ["spine", "leaf"], hosts=["gpu-a"], switches=["leaf", "spine"], delay_us=3)
    document["links"][1] |= {"gbps": 0.5, "delay_us": 0}
    fabric = GraphSpecification.model_validate(document).build()
    assert fabric.hosts == ("gpu-a",)
    assert fabric.switches == ("leaf", "spine")
    assert [(cable.ends, cable.rate_bps, cable.delay_s) for cable in fabric.cables] == [
        (("gpu-a", "leaf"), 100e9, 3e-6),
        (("spine", "leaf"), 0.5e9, 0.0),
    ]


def test_links_between_the_same_ends_are_parallel() -> None:
    document = graph(["h0", "s0"], ["s0", "s1"], ["s1", "s0"], ["s0", "s1"], ["h1", "s1"], ["h1", "s1"])
    fabric = GraphSpecification.model_validate(document).build()
    assert neighbours(fabric, "s0") == ["h0", "s1", "s1", "s1"]
    assert [fabric.parallel_index(link.index) for link in fabric.links_from["s1"]] == [0, 1, 2, 0, 1]
    assert len(fabric.nics["h1"]) == 2


def test_every_fault_of_a_graph_is_named_at_once() -> None:
    document = graph(
        ["h0", "s0"],
        ["s0", "s7"],
        ["h8", "h9"],
        ["s1", "s1"],
        ["h0", "h1"],
        ["s0"],
        hosts=["h0", "h1", "h0"],
        switches=["s0", "s1", "h1"],
        colour="red",
    )
    document["links"][1]["gbps"] = -1
    del document["links"][4]["gbps"]
    known = "expected a host or switch of the topology"
    assert refusals(document) == {
        ("links", 1, "gbps"): "Input should be greater than 0",
        ("links", 4, "gbps"): "Field required",
        ("links", 5, "ends", 1): "Field required",
        ("colour",): "Extra inputs are not permitted",
        ("hosts", 2): "expected another name than that of hosts[0]",
        ("switches", 2): "expected another name than that of hosts[1]",
        ("links", 1, "ends", 1): known,
        ("links", 2, "ends", 0): known,
        ("links", 2, "ends", 1): known,
        ("links", 3, "ends", 1): "expected another node than the first end",
        ("links", 4, "ends"): "expected a switch at one end, 'h0' and 'h1' are both hosts",
    }


@pytest.mark.parametrize("name", ["h/1", "h\x1b[31m", "h\n1"])
def test_names_are_printable_and_without_a_slash(name: str) -> None:
    document = graph(["h0", "s0"], [name, "s0"], hosts=["h0", name], switches=["s0"])
    refused = "Value error, expected printable characters and no slash"
    assert refusals(document) == {("hosts", 1): refused, ("links", 1, "ends", 0): refused}


def test_what_does_not_hang_together_is_named_beside_wrong_values() -> None:
    document = graph(["h0", "s0"], ["h1", "s1"], hosts=["h0", "h1", "h2"], gpus_per_host=0)
    assert refusals(document) == {
        ("gpus_per_host",): "Input should be greater than 0",
        ("hosts", 2): "expected a link to host 'h2', there is none",
        ("links",): "expected a connected graph: switch 's1' has no path to switch 's0'",
    }


def test_hosts_do_not_connect_switches() -> None:
    document = graph(["h0", "s0"], ["h0", "s1"], hosts=["h0"])
    assert refusals(document) == {("links",): "expected a connected graph: switch 's1' has no path to switch 's0'"}


def test_a_misspelt_link_is_not_also_a_missing_one() -> None:
    assert refusals(graph(["h0", "s0"], ["s0", "s1"], ["h1", "s9"])).keys() == {("links", 2, "ends", 1)}
    assert refusals(graph(["h0", "s0"], ["s0", "s1"], ["h1"])).keys() == {("links", 2, "ends", 1)}


@pytest.mark.parametrize(
    ("changes", "location"),
    [
        ({"hosts": []}, ("hosts",)),
        ({"hosts": 2}, ("hosts",)),
        ({"hosts": ["h0", ""]}, ("hosts", 1)),
        ({"switches": ["s0", 1]}, ("switches", 1)),
        ({"links": []}, ("hosts", 1)),
        ({"links": 7}, ("links",)),
        ({"links": ["h0"]}, ("links", 0)),
        ({"links": [{"ends": "h0", "gbps": 1}]}, ("links", 0, "ends")),
    ],
)
def test_what_is_no_graph_is_refused_where_it_is_wrong(
    changes: dict[str, Any], location: tuple[str | int, ...]
) -> None:
    assert location in refusals(graph(["h0", "s0"], ["s0", "s1"], ["h1", "s1"]) | changes)


def test_hosts_and_switches_have_at_most_as_many_links_as_addresses_and_ports() -> None:
    fits = graph(*[["h0", "s0"]] * 254, *[["h1", "s0"]] * 254, ["s0", "s1"])
    TOPOLOGY.validate_python(fits)
    assert refusals(fits | graph(*[["h0", "s0"]] * 255, *[["h1", "s0"]] * 254, ["s0", "s1"])) == {
        ("hosts", 0): "expected at most 254 links, 'h0' has 255",
        ("switches", 0): "expected at most 509 links, 's0' has 510",
    }


def test_at_most_as_many_hosts_as_addresses() -> None:
    hosts = [f"h{number}" for number in range(65_537)]
    assert refusals(graph(["h0", "s0"], hosts=hosts, switches=["s0"])) == {("hosts",): "expected at most 65,536 hosts"}


def test_an_accepted_graph_may_be_handed_on() -> None:
    accepted = TOPOLOGY.validate_python(graph(["h0", "s0"], ["s0", "s1"], ["h1", "s1"]))
    assert TOPOLOGY.validate_python(accepted) == accepted
