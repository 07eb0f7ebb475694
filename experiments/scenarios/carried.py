"""What of a scenario the emulator carries, and as what."""

from dataclasses import replace

from topologies.fabric import Fabric
from workloads.scenario import ProfileSource, Scenario


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


def why_not_told(scenario: Scenario) -> str | None:
    """What of a scenario only switches' counters tell; None where jobs tell all."""
    for number, job in enumerate(scenario.jobs):
        if job.profile is ProfileSource.MEASURED:
            return f"jobs[{number}].profile: only a run on the emulator measures jobs; expected told"
    return None
