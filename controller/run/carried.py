"""What of a scenario the emulator carries, and as what."""

from collections.abc import Sequence
from dataclasses import replace

from topologies.fabric import Fabric
from workloads.scenario import ScenarioEvent


def as_carried(fabric: Fabric) -> Fabric:
    """The fabric with the NICs' cables at the rate of the PCIe link behind them.

    That is what a PCIe switch with one NIC does. Raises ValueError for PCIe switches with more: hosts of the emulator
    have nothing that several NICs share.
    """
    if fabric.pcie is None:
        return fabric
    if fabric.pcie.nics_per_switch > 1:
        raise ValueError(f"the emulator carries PCIe switches of one NIC, not of {fabric.pcie.nics_per_switch}")
    fastest_bps = fabric.pcie.rate_bps
    cables = tuple(
        replace(cable, rate_bps=min(cable.rate_bps, fastest_bps)) if fabric.host_index.keys() & cable.ends else cable
        for cable in fabric.cables
    )
    return replace(fabric, cables=cables, pcie=None)


def require_carried_events(events: Sequence[ScenarioEvent]) -> None:
    """Raise ValueError, with its place in the scenario, for an event that the emulator does not carry: of a host."""
    for number, event in enumerate(events):
        if event.host is not None:
            raise ValueError(f"events[{number}].host: the emulator does not take hosts down yet, got {event.host!r}")
