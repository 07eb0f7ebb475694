"""Rates are divided so that a machine carries them."""

from random import Random

import pytest
from pydantic import TypeAdapter

from experiments.scenarios.real_hosts.scaled_fabric import default_real_scale, scaled_fabric, scaled_topology
from tests.experiments.scenarios.real_hosts.jobs import CLOS, jobs_of
from tests.topologies.renumbering import renumbered_specification
from topologies.specification import Topology


def test_the_fastest_link_has_200_megabits_a_second() -> None:
    fabric = jobs_of({})[0].fabric
    assert default_real_scale(fabric) == 250
    assert {link.rate_bps for link in scaled_fabric(fabric, 250).links} == {200e6, 100e6}


def test_slow_fabrics_are_not_made_faster() -> None:
    topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 0.1, "bottleneck_gbps": 0.01}
    routing, _ = jobs_of({"hosts": ["h0", "h1"]}, topology=topology)
    assert default_real_scale(routing.fabric) == 1


def test_a_nic_is_no_faster_than_its_pcie_switch() -> None:
    pcie = {"nics_per_switch": 1, "gbps": 25}
    fabric = jobs_of({}, topology=CLOS | {"pcie": pcie})[0].fabric
    scale = default_real_scale(fabric)
    rates_bps = {link.rate_bps for link in scaled_fabric(fabric, scale).links if link.source in fabric.hosts}
    assert (scale, rates_bps) == (125, {200e6})


def test_nics_that_share_a_pcie_switch_are_refused() -> None:
    fabric = jobs_of({}, topology=CLOS | {"pcie": {"nics_per_switch": 2, "gbps": 25}})[0].fabric
    with pytest.raises(ValueError, match="PCIe switches with one NIC"):
        scaled_fabric(fabric, 1)


@pytest.mark.parametrize(
    "document",
    [
        CLOS,
        CLOS | {"pcie": {"nics_per_switch": 1, "gbps": 25}},
        {"kind": "graph", "hosts": ["a"], "switches": ["s"], "links": [{"ends": ["a", "s"], "gbps": 40}]},
    ],
)
def test_the_controller_knows_the_rates_that_links_have(document: dict[str, object]) -> None:
    topology: Topology = TypeAdapter[Topology](Topology).validate_python(document)
    scaled = scaled_topology(topology, 250).build()
    assert [link.rate_bps for link in scaled.links] == [link.rate_bps / 250 for link in topology.build().links]
    assert scaled.host_index == topology.build().host_index


def test_hosts_and_switches_know_the_same_macs_where_the_topology_has_none() -> None:
    document = renumbered_specification(jobs_of({})[0].fabric, Random(1)).model_dump(mode="json")
    nics = [nic for host in document["hosts"] for nic in host["nics"]]
    nics[0]["mac"], nics[1]["mac"], nics[2]["mac"] = None, "02:00:00:00:00:01", None
    topology: Topology = TypeAdapter[Topology](Topology).validate_python(document)
    made, known = scaled_fabric(topology.build(), 250), scaled_topology(topology, 250).build()
    assert made == known
    macs = [nic.mac for nics in known.nics.values() for nic in nics]
    assert None not in macs
    assert len(set(macs)) == len(macs)
    assert str(macs[1]) == "02:00:00:00:00:01"
