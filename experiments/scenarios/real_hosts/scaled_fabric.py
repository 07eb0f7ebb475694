"""The fabric of a run on real hosts: the scenario's, at rates that a machine carries."""

from dataclasses import replace

from experiments.scenarios.emulated_network import as_emulated
from topologies.fabric import Fabric

FASTEST_LINK_BPS = 200e6
"""The rate of the fastest link after rates are divided by the default scale: a laptop carries several of them."""


def default_real_scale(fabric: Fabric) -> float:
    """Return the divisor of rates, at least 1, with which the fastest link has 200 Mbit/s."""
    return max(1.0, max(link.rate_bps for link in as_emulated(fabric).links) / FASTEST_LINK_BPS)


def scaled_fabric(fabric: Fabric, scale: float) -> Fabric:
    """Return a fabric with its rates divided. Raises ValueError where a PCIe switch has several NICs."""
    flat = as_emulated(fabric)
    return replace(flat, cables=tuple(replace(cable, rate_bps=cable.rate_bps / scale) for cable in flat.cables))
