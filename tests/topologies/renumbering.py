"""Fabrics with the nodes and cables of another one, and with addresses, subnets, MACs and ports that nobody derives."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.topologies.rewriting import rewritten
from topologies.addressing import Address
from topologies.fabric import Fabric, Link, Nic
from topologies.fabric_specification import FabricSpecification


def renumbered(fabric: Fabric, random: Random) -> Fabric:
    """Return the fabric with made-up addresses, names of NICs, names and numbers of ports, and node ids."""
    return renumbered_specification(fabric, random).build()


def renumbered_specification(fabric: Fabric, random: Random) -> FabricSpecification:
    """Return what ``renumbered`` builds."""
    # NICs at one switch share a subnet, or those of one host, or all of them.
    sharing = random.choice(("switch", "host", "fabric"))
    shares: dict[str, list[int]] = {}

    def nic_of(nic: Nic) -> tuple[str, str]:
        share = {"switch": fabric.links[nic.link].destination, "host": nic.host, "fabric": ""}[sharing]
        shares.setdefault(share, random.sample(range(1, (1 << 11) - 1), 2000))
        subnet = 172 << 24 | 16 << 16 | list(shares).index(share) * 37 % 512 << 11
        return f"ens{random.randrange(100)}f{nic.index}", f"{Address(subnet | shares[share].pop())}/21"

    def switch_of(switch: dict[str, Any], links: Sequence[Link]) -> tuple[dict[str, Any], list[str]]:
        numbers = random.sample(range(1, 510), len(links))
        ports = [{"name": f"Ethernet1/{number}", "number": number} for number in numbers]
        changes = {"node_id": switch["node_id"] + random.choice((0, 1000, 1 << 31)), "ports": ports}
        return changes, [f"Ethernet1/{number}" for number in numbers]

    return rewritten(fabric, {node: node for node in (*fabric.hosts, *fabric.switches)}, nic_of, switch_of)
