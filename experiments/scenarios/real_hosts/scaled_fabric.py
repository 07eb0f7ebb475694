"""The fabric of a run on real hosts: the scenario's, at rates that a machine carries."""

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from experiments.scenarios.emulated_network import as_emulated
from experiments.scenarios.switch_kind import SwitchKind
from topologies.addressing import MacAddress, regular_interface
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.specification import Topology

_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)

FASTEST_LINK_BPS = 200e6
"""The rate of the fastest link after rates are divided by the default scale: a laptop carries several of them."""

FASTEST_LINK_OF_OVS_BPS = 50e6
"""The same over Open vSwitch, whose switches are processes of their own, with short queues."""


def default_real_scale(fabric: Fabric, switch: SwitchKind = SwitchKind.EMULATOR) -> float:
    """Return the divisor of rates, at least 1, with which switches of a kind carry the fastest link."""
    fastest_bps = FASTEST_LINK_OF_OVS_BPS if switch is SwitchKind.OVS else FASTEST_LINK_BPS
    return max(1.0, max(link.rate_bps for link in as_emulated(fabric).links) / fastest_bps)


def scaled_fabric(fabric: Fabric, scale: float) -> Fabric:
    """Return a fabric with its rates divided, and with a MAC for every NIC.

    Raises:
        ValueError: A PCIe switch has several NICs.
    """
    flat = as_emulated(fabric)
    cables = tuple(replace(cable, rate_bps=cable.rate_bps / scale) for cable in flat.cables)
    if flat.interfaces is None:
        return replace(flat, cables=cables)
    macs = _macs(flat)
    interfaces = tuple(
        tuple(replace(interface, mac=macs[host, number]) for number, interface in enumerate(given))
        for host, given in zip(flat.hosts, flat.interfaces, strict=True)
    )
    return replace(flat, cables=cables, interfaces=interfaces)


def scaled_topology(topology: Topology, scale: float) -> Topology:
    """Return the topology of ``scaled_fabric``. Raises ValueError where a rate is too low for a topology then."""
    document = _scaled(topology.model_dump(), scale)
    if isinstance(topology, FabricSpecification):
        macs = _macs(topology.build())
        for host in document["hosts"]:
            for number, nic in enumerate(host["nics"]):
                nic["mac"] = str(macs[host["name"], number])
    return _TOPOLOGY.validate_python(document)


def _macs(fabric: Fabric) -> dict[tuple[str, int], MacAddress]:
    """Return the MACs of all NICs. Those of which the topology says none get one of a regular fabric's.

    A run makes the hosts itself, and TCP takes nothing that has come by broadcast.
    """
    nics = [nic for nics in fabric.nics.values() for nic in nics]
    taken = {nic.mac for nic in nics}
    regular = (MacAddress(regular_interface(number, 0).mac or 0) for number in range(2 * len(nics)))
    free = (mac for mac in regular if mac not in taken)
    return {(nic.host, nic.index): next(free) if nic.mac is None else nic.mac for nic in nics}


def _scaled(value: Any, scale: float) -> Any:
    if isinstance(value, dict):
        return {
            key: found / scale if key.endswith("gbps") and found is not None else _scaled(found, scale)
            for key, found in value.items()
        }
    return [_scaled(found, scale) for found in value] if isinstance(value, list | tuple) else value
