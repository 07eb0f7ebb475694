"""The fabric of a run on real hosts: the scenario's, at rates that a machine carries."""

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from experiments.scenarios.emulated_network import as_emulated
from topologies.fabric import Fabric
from topologies.specification import Topology

_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)

FASTEST_LINK_BPS = 200e6
"""The rate of the fastest link after rates are divided by the default scale: a laptop carries several of them."""


def default_real_scale(fabric: Fabric) -> float:
    """Return the divisor of rates, at least 1, with which the fastest link has 200 Mbit/s."""
    return max(1.0, max(link.rate_bps for link in as_emulated(fabric).links) / FASTEST_LINK_BPS)


def scaled_fabric(fabric: Fabric, scale: float) -> Fabric:
    """Return a fabric with its rates divided. Raises ValueError where a PCIe switch has several NICs."""
    flat = as_emulated(fabric)
    return replace(flat, cables=tuple(replace(cable, rate_bps=cable.rate_bps / scale) for cable in flat.cables))


def scaled_topology(topology: Topology, scale: float) -> Topology:
    """Return a topology with its rates divided. Raises ValueError where one is too low for a topology then."""
    return _TOPOLOGY.validate_python(_scaled(topology.model_dump(), scale))


def _scaled(value: Any, scale: float) -> Any:
    if isinstance(value, dict):
        return {
            key: found / scale if key.endswith("gbps") and found is not None else _scaled(found, scale)
            for key, found in value.items()
        }
    return [_scaled(found, scale) for found in value] if isinstance(value, list | tuple) else value
