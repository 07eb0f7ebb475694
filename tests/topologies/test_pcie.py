import pytest

from topologies.fabric import HostLink, Pcie
from topologies.specification import StarSpecification


def star(nics_per_switch: int) -> StarSpecification:
    return StarSpecification.model_validate(
        {
            "kind": "star",
            "hosts": 2,
            "nics_per_host": 3,
            "host_link_gbps": 300,
            "pcie": {"gbps": 128, "nics_per_switch": nics_per_switch},
        }
    )


def test_host_links_are_numbered_on_after_the_fabrics() -> None:
    fabric = star(nics_per_switch=2).build()
    assert [link.index for link in (*fabric.links, *fabric.host_links)] == list(range(12 + 8))
    assert fabric.host_links[:3] == (
        HostLink(12, "h0", 0, True, 128e9),
        HostLink(13, "h0", 0, False, 128e9),
        HostLink(14, "h0", 1, True, 128e9),
    )
    assert fabric.rates_bps == (100e9,) * 12 + (128e9,) * 8
    assert fabric.link(3) is fabric.links[3]
    assert fabric.link(14) is fabric.host_links[2]
    assert fabric.parallel_index(14) == 0


@pytest.mark.parametrize(("nics_per_switch", "expected"), [(1, (14, 23)), (2, (12, 19)), (3, (12, 15))])
def test_a_flow_passes_the_pcie_switch_of_its_nic_at_either_end(
    nics_per_switch: int, expected: tuple[int, int]
) -> None:
    fabric = star(nics_per_switch).build()
    assert fabric.host_links_between(fabric.nics["h0"][1], fabric.nics["h1"][2]) == expected


def test_without_pcie_nothing_is_inside_hosts() -> None:
    fabric = StarSpecification(kind="star", hosts=2, host_link_gbps=100).build()
    assert fabric.host_links == ()
    assert fabric.host_links_between(fabric.nics["h0"][0], fabric.nics["h1"][0]) == ()


@pytest.mark.parametrize("pcie", [Pcie(0, 1e9), Pcie(1, 0.0), Pcie(1, float("inf"))])
def test_pcie_switches_that_cannot_be_are_refused(pcie: Pcie) -> None:
    fabric = star(1).build()
    with pytest.raises(ValueError, match="a PCIe switch with NICs and a finite rate above 0"):
        type(fabric)(fabric.hosts, fabric.switches, fabric.cables, fabric.gpus_per_host, pcie)
