"""Writes a fabric out as a fabric file: what regular kinds of topology leave unsaid stands there."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from topologies.fabric import Cable, Fabric, Nic
from topologies.fabric_specification import FabricSpecification


def expanded(fabric: Fabric) -> FabricSpecification:
    """Return a specification that builds the same fabric.

    Raises:
        ValidationError: A node has a name that cannot stand in the ends of cables, which have a colon behind it.
    """
    document: dict[str, Any] = {
        "kind": "fabric",
        "gpus_per_host": fabric.gpus_per_host,
        "hosts": [{"name": host, "nics": list(map(_nic, nics))} for host, nics in fabric.nics.items()],
        "switches": [
            {
                "name": switch,
                "device_id": identity.device_id,
                "node_id": identity.node_id,
                "control": identity.control,
                "target": identity.target,
                "mac": None if identity.mac is None else str(identity.mac),
                "ports": [{"name": name, "number": number} for number, name in identity.port_names],
            }
            for switch, identity in fabric.identity.items()
        ],
        "cables": [_cable(fabric, number, cable) for number, cable in enumerate(fabric.cables)],
    }
    if fabric.pcie is not None:
        pcie = fabric.pcie
        document["pcie"] = {"gbps": _divided(pcie.rate_bps, 1e9), "nics_per_switch": pcie.nics_per_switch}
    return FabricSpecification.model_validate(document)


def fabric_file(specification: FabricSpecification) -> str:
    """Return a fabric file, YAML with a line for each NIC, port and cable. What is as by default is left out."""
    document = specification.model_dump(mode="json", exclude_defaults=True)
    return "\n".join(("topology:", *_lines(document, "  "), ""))


def _lines(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield block style for mappings and for lists of mappings that have lists, and one line for all else."""
    for key, value in mapping.items():
        if not _is_list_of_mappings(value):
            yield f"{indent}{key}: {_inline(value)}"
            continue
        yield f"{indent}{key}:"
        for item in value:
            if any(map(_is_list_of_mappings, item.values())):
                first, *others = _lines(item, f"{indent}    ")
                yield f"{indent}  - {first.strip()}"
                yield from others
            else:
                yield f"{indent}  - {_inline(item)}"


def _is_list_of_mappings(value: object) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value)
    )


def _inline(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False, allow_unicode=True)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _nic(nic: Nic) -> dict[str, str]:
    found = {"name": nic.name, "address": f"{nic.address}/{nic.subnet.length}"}
    return found if nic.mac is None else found | {"mac": str(nic.mac)}


def _cable(fabric: Fabric, number: int, cable: Cable) -> dict[str, Any]:
    link = fabric.links[2 * number]
    ends = ((link.source, link.source_port), (link.destination, link.destination_port))
    return {
        "ends": [f"{node}:{fabric.port_names[node].get(port, port)}" for node, port in ends],
        "gbps": _divided(cable.rate_bps, 1e9),
        "delay_us": _divided(cable.delay_s, 1e-6),
    }


def _divided(product: float, factor: float) -> float:
    """Return what gives this product again, to the last bit if there is such a number."""
    near = product / factor
    candidates = (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf))
    return next((each for each in candidates if each * factor == product), near)
