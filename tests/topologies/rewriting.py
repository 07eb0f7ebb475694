"""Fabrics with the nodes and cables of another one, whose file calls and numbers nodes, NICs and ports otherwise."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from topologies.expanding import expanded
from topologies.fabric import Fabric, Link, Nic
from topologies.fabric_specification import FabricSpecification


def rewritten(
    fabric: Fabric,
    names: Mapping[str, str],
    nic_of: Callable[[Nic], tuple[str, str]],
    switch_of: Callable[[dict[str, Any], Sequence[Link]], tuple[dict[str, Any], list[str]]],
) -> FabricSpecification:
    """Return the specification of a fabric with other words and numbers; MACs are made up.

    Args:
        fabric: The other one.
        names: Of all nodes, by their names in ``fabric``.
        nic_of: Returns a NIC's name, and its address with the length of its subnet's prefix.
        switch_of: Takes what is known of a switch, and its links in order. Returns what changes, and the names of the
            ports that they leave by.
    """
    document = expanded(fabric).model_dump(mode="json")
    ends: dict[str, str] = {}
    for host in document["hosts"]:
        old, host["name"] = host["name"], names[host["name"]]
        for nic, known in zip(host["nics"], fabric.nics[old], strict=True):
            mac = f"b8:59:9f:00:{len(ends) >> 8:02x}:{len(ends) & 255:02x}"
            name, address = nic_of(known)
            ends[f"{old}:{nic['name']}"] = f"{host['name']}:{name}"
            nic |= {"name": name, "address": address, "mac": mac}
    for switch in document["switches"]:
        links = fabric.links_from[switch["name"]]
        changes, ports = switch_of(switch, links)
        for link, port in zip(links, ports, strict=True):
            ends[f"{switch['name']}:{link.source_port}"] = f"{names[switch['name']]}:{port}"
        switch |= {"name": names[switch["name"]], **changes}
    for cable in document["cables"]:
        cable["ends"] = [ends[end] for end in cable["ends"]]
    return FabricSpecification.model_validate(document)
