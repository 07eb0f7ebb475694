"""Topologies of p4lang's tutorials."""

import json
from pathlib import Path
from typing import Any

import pytest

from topologies.documents import DocumentError, read_document
from topologies.p4lang import is_p4lang_topology, p4lang_topology

_HOST = {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["ip route", "ip link"]}
_TOPOLOGY: dict[str, Any] = {
    "hosts": {"h1": _HOST, "h11": {"ip": "10.0.2.11/31", "mac": "08:00:00:00:01:01"}},
    "switches": {"s1": {"runtime_json": "s1.json", "cpu_port": "510"}, "s2": {"program": "build/other.json"}},
    "links": [["h1", "s1-p2"], ["s1-p3", "s2-p1", "5ms", 0.5], ["s2-p7", "h11", 2, 10]],
}


def _write(path: Path, topology: object) -> Path:
    path.write_text(json.dumps(topology))
    return path


def test_hosts_switches_and_links_are_those_of_the_file(tmp_path: Path) -> None:
    document = read_document(_write(tmp_path / "topology.json", _TOPOLOGY))
    assert is_p4lang_topology(document.contents)
    found = p4lang_topology(document)
    links = {(link.source, link.source_port, link.destination, link.destination_port) for link in found.fabric.links}
    assert {("h1", 0, "s1", 2), ("s1", 3, "s2", 1), ("s2", 7, "h11", 0)} <= links
    between = next(link for link in found.fabric.links if (link.source, link.destination) == ("s1", "s2"))
    assert (between.rate_bps, between.delay_s) == (pytest.approx(0.5e6), pytest.approx(0.005))
    last = next(link for link in found.fabric.links if link.source == "h11")
    assert (last.rate_bps, last.delay_s) == (pytest.approx(10e6), pytest.approx(0.002))
    (nic,) = found.fabric.nics["h11"]
    assert (str(nic.address), str(nic.mac), nic.name, nic.subnet.length) == (
        "10.0.2.11",
        "08:00:00:00:01:01",
        "eth0",
        31,
    )
    assert found.fabric.device_ids == {"s1": 0, "s2": 1}
    assert found.commands == {"h1": ("ip route", "ip link"), "h11": ()}
    assert (found.switches["s1"].entries, found.switches["s1"].cpu_port) == ("s1.json", 510)
    assert found.switches["s2"].program == "build/other.json"


@pytest.mark.parametrize(
    ("part", "fault", "said"),
    [
        (("hosts", "h1", "ip"), "10.0.1.300/24", "hosts"),
        (("hosts", "h1", "mtu"), 9000, "unknown key"),
        (("switches", "s1", "cli_input"), "commands.txt", "use runtime_json"),
        (("switches", "s1", "cpu_port"), "first", "expected the number of a port up to 511, got 'first'"),
        (("switches", "s1", "cpu_port"), 512, "expected the number of a port up to 511, got '512'"),
        (("links", 0, 1), "s1", "expected a host, or a switch and its port as s1-p1, got 's1'"),
        (("links", 0, 1), "s3-p1", "'s3-p1'"),
        (("links", 1, 2), "soon", "expected a delay"),
        (("links", 1, 3), -1, "expected a rate in Mbit/s"),
        (("links", 1), ["s1-p3"], "expected two ends"),
        (("routes",), {}, "routes: unknown key"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, part: tuple[Any, ...], fault: object, said: str) -> None:
    topology = json.loads(json.dumps(_TOPOLOGY))
    place = topology
    for key in part[:-1]:
        place = place[key]
    place[part[-1]] = fault
    with pytest.raises(DocumentError) as raised:
        p4lang_topology(read_document(_write(tmp_path / "topology.json", topology)))
    assert "topology.json" in str(raised.value)
    assert said in str(raised.value)


def test_a_topology_of_trainyard_is_none() -> None:
    assert not is_p4lang_topology({"topology": {}, "hosts": {}, "switches": {}, "links": []})
    assert not is_p4lang_topology([])
