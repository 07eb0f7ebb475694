"""What a backend cannot run of a scenario, and as what the emulator carries a fabric."""

from dataclasses import replace

from experiments.scenarios.backend import Backend
from policies.enforcement import Enforcement
from topologies.fabric import Fabric
from workloads.scenario import ProfileSource, Scenario


def as_emulated(fabric: Fabric) -> Fabric:
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


def unsupported_reason(scenario: Scenario) -> str | None:
    """What of a scenario needs the counters of switches; None where jobs tell all."""
    for number, job in enumerate(scenario.jobs):
        if job.profile is ProfileSource.MEASURED:
            return f"jobs[{number}].profile: only a run on the emulator measures jobs; expected told"
    return None


def unsupported_on(scenario: Scenario, backend: Backend, enforcement: Enforcement) -> str | None:
    """What of a sound scenario, or of what is asked of it, the backend cannot run; None where it can."""
    match backend:
        case Backend.SIMULATOR:
            if not scenario.reads_ports:
                return "reads_ports: only the emulator has the probes that tell instead; expected --on emulator"
            return unsupported_reason(scenario)
        case Backend.EMULATOR:
            if enforcement is Enforcement.IDEAL:
                return "--enforcement ideal: only the simulator sets rates; expected --on simulator"
            try:
                as_emulated(scenario.topology.build())
            except ValueError as error:
                return f"topology.pcie.nics_per_switch: {error}"
            return None
