"""A fabric in which an operator has made everything up: names, addresses, subnets, numbers and two vendors' ports."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.topologies.rewriting import rewritten
from topologies.addressing import Address
from topologies.fabric import Fabric, Link, Nic
from topologies.fabric_specification import FabricSpecification


@dataclass(frozen=True)
class MadeUpFabric:
    """The fabric, and the names that its nodes have in place of those of the fabric it is made from."""

    specification: FabricSpecification
    names: dict[str, str]


def made_up(fabric: Fabric, random: Random, suffix: str = "") -> MadeUpFabric:
    """Return a fabric of the same shape and rates; names of nodes end with ``suffix``."""
    nodes = [*fabric.hosts, *fabric.switches]
    numbers = random.sample(range(1000), len(nodes))
    names = {
        node: f"{'gpu' if node in fabric.host_index else 'sw'}-{number}.row-{number % 7}{suffix}"
        for node, number in zip(nodes, numbers, strict=True)
    }
    ids = random.sample(range(1, 1 << 31), len(fabric.switches))
    racks: dict[str, list[int]] = {}

    def nic_of(nic: Nic) -> tuple[str, str]:
        rack = fabric.links[nic.link].destination
        free = racks.setdefault(rack, random.sample(range(1, 62), 61))
        subnet = (172 << 24 | 20 << 16 | 5 << 8) + (list(racks).index(rack) * 5 << 6)
        name = f"enp{random.randrange(200)}s0f{nic.index}np{nic.index}"
        return name, f"{Address(subnet | free.pop())}/26"

    def switch_of(switch: dict[str, Any], links: Sequence[Link]) -> tuple[dict[str, Any], list[str]]:
        position = fabric.switch_index[switch["name"]]
        vendor = _connectors if position % 2 else _single_ports
        ports, names_of_ports = vendor([link.rate_bps / 1e9 for link in links], random)
        return {"ports": ports, "node_id": ids[position], "device_id": random.randrange(1, 1 << 40)}, names_of_ports

    return MadeUpFabric(rewritten(fabric, names, nic_of, switch_of), names)


def _single_ports(speeds_gbps: Sequence[float], random: Random) -> tuple[list[dict[str, Any]], list[str]]:
    """One vendor says how fast its ports are."""
    numbers = random.sample(range(1, 510), len(speeds_gbps))
    ports = [
        {"name": f"Ethernet{number}", "number": number, "gbps": gbps}
        for number, gbps in zip(numbers, speeds_gbps, strict=True)
    ]
    return ports, [str(port["name"]) for port in ports]


def _connectors(speeds_gbps: Sequence[float], random: Random) -> tuple[list[dict[str, Any]], list[str]]:
    """The other one has four ports at a connector, of which cables take two here."""
    numbers = random.sample(range(1, 120), len(speeds_gbps))
    ports = [
        {"name": f"et-0/0/{number}", "number": 4 * number, "breakout": {"lanes": 4, "gbps": gbps}}
        for number, gbps in zip(numbers, speeds_gbps, strict=True)
    ]
    return ports, [f"{port['name']}/{random.randint(1, 4)}" for port in ports]


@dataclass(frozen=True)
class Tables:
    """What NetBox would say of a fabric, as CSV."""

    cables: str
    devices: str
    addresses: str
    interfaces: str


def tables_of(specification: FabricSpecification) -> Tables:
    """Return the tables of a fabric."""
    cables = [["side_a_device", "side_a_name", "side_b_device", "side_b_name", "speed"]]
    for cable in specification.cables:
        first, second = cable.split_ends
        cables.append([*first, *second, str(round((cable.gbps or 0) * 1e6))])
    devices = [["name", "role", "device_id", "node_id"]]
    devices += [[host.name, "server", "", ""] for host in specification.hosts]
    devices += [
        [switch.name, "fabric", str(switch.device_id), str(switch.node_id)] for switch in specification.switches
    ]
    addresses = [["address", "mac_address", "device", "interface"]]
    addresses += [
        [nic.address, nic.mac or "", host.name, nic.name] for host in specification.hosts for nic in host.nics
    ]
    interfaces = [["device", "name", "number"]]
    interfaces += [
        [switch.name, port.name, str(port.number)] for switch in specification.switches for port in switch.cabled_ports
    ]
    return Tables(*map(_csv, (cables, devices, addresses, interfaces)))


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
