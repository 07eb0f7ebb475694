"""The back ends: what each can run of a scenario, and one function that runs a scenario on any of them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from experiments.scenarios.results import RunResult
from experiments.scenarios.switch_kind import SwitchKind
from policies.enforcement import Enforcement
from topologies.steering import Steering
from topologies.targets import Target
from workloads.scenario import CongestionControlChoice, ProfileSource, Scenario
from workloads.workload import TorchWorkload

if TYPE_CHECKING:
    from experiments.scenarios.job_driver import Progress
    from policies.policy import Policy

    class RunPolicy(Protocol):
        """Runs a scenario under a policy."""

        def __call__(self, policy: "Policy | str", /, *, on_progress: Progress) -> RunResult:
            """Return the result. Raises RunError where the run failed."""


TORCH = "torch==2.13.0"
"""The version that jobs on real hosts are tested with."""


class Backend(StrEnum):
    """A back end that can run a scenario."""

    EMULATOR = "emulator"
    SIMULATOR = "simulator"
    NAMESPACES = "namespaces"
    MININET = "mininet"

    @property
    def has_real_hosts(self) -> bool:
        """Whether hosts run real programs, in wall-clock time."""
        return self in (Backend.NAMESPACES, Backend.MININET)


class RunError(Exception):
    """A run failed; the message says why."""


def run_on(
    backend: Backend,
    scenario: Scenario,
    policy: "Policy | str",
    enforcement: Enforcement = Enforcement.LEVELS,
    *,
    switch: SwitchKind = SwitchKind.EMULATOR,
    is_real_time: bool = False,
    on_progress: "Progress",
) -> RunResult:
    """Run a scenario to the departure of its last job.

    On real hosts ``switch`` is what their switches are, and with ``is_real_time`` the emulator asks for priority.

    Raises:
        RunError: The run failed.
    """
    match backend:
        case Backend.EMULATOR:
            return _emulate(scenario, policy, on_progress)
        case Backend.SIMULATOR:
            return _simulate(scenario, policy, enforcement, on_progress)
        case Backend.NAMESPACES | Backend.MININET:
            with real_hosts(backend, scenario, switch=switch, is_real_time=is_real_time) as run:
                return run(policy, on_progress=on_progress)


def unsupported_on(
    scenario: Scenario, backend: Backend, enforcement: Enforcement, switch: SwitchKind = SwitchKind.EMULATOR
) -> str | None:
    """Return why a back end cannot run a valid scenario with this enforcement, or None where it can."""
    if switch is SwitchKind.OVS and (reason := _unsupported_on_openvswitch(scenario)) is not None:
        return reason
    choice = scenario.congestion_control
    if choice is not None and (reason := unsupported_control(choice, backend)) is not None:
        return f"congestion_control: {reason}"
    match backend:
        case Backend.SIMULATOR:
            if not scenario.reads_ports:
                return "reads_ports: only the emulator has probes to find dead links; expected --on emulator"
            return unplannable_reason(scenario)
        case Backend.NAMESPACES | Backend.MININET if (reason := _unsupported_on_real_hosts(scenario)) is not None:
            return reason
        case Backend.EMULATOR | Backend.NAMESPACES | Backend.MININET:
            if enforcement is Enforcement.IDEAL:
                return "--enforcement ideal: only the simulator sets rates; expected --on simulator"
            fabric = scenario.topology.build()
            for name, identity in fabric.identity.items():
                if identity.target is Target.TOFINO and switch is SwitchKind.EMULATOR:
                    return f"topology: target of {name} is tofino, which the emulator is not; expected --on simulator"
            pcie = fabric.pcie
            if pcie is not None and pcie.nics_per_switch > 1:
                return (
                    "topology.pcie.nics_per_switch: the emulator supports PCIe switches with one NIC, "
                    f"not with {pcie.nics_per_switch}"
                )
            return None


def unsupported_control(choice: CongestionControlChoice, backend: Backend) -> str | None:
    """Return why the hosts of a back end cannot have a congestion control; None where they can."""
    if backend is not Backend.EMULATOR:
        return "only the emulator has hosts with one; expected --on emulator"
    from experiments.scenarios.emulated_network import chosen_control

    try:
        chosen_control(choice)
    except ValueError as error:
        return str(error)
    return None


def _unsupported_on_real_hosts(scenario: Scenario) -> str | None:
    if scenario.steering is Steering.SOURCE_PORT:
        return "steering: the connections of real programs keep their source ports; expected rule"
    for number, event in enumerate(scenario.events):
        if event.switch is not None:
            return f"events[{number}].switch: a switch cannot be taken down under real hosts; expected --on emulator"
    for number, job in enumerate(scenario.jobs):
        if isinstance(job.workload, TorchWorkload):
            if job.profile is ProfileSource.MEASURED:
                return f"jobs[{number}].profile: the ranks of a PyTorch job measure and report it; expected told"
            if find_spec("torch") is None:
                return f"jobs[{number}].workload: PyTorch is not installed: pip install {TORCH}"
    return None


def _unsupported_on_openvswitch(scenario: Scenario) -> str | None:
    if scenario.probes:
        return "probes: Open vSwitch writes no in-band telemetry; expected --switch emulator"
    if ordinary := sorted(scenario.topology.build().ordinary_switches):
        return f"topology: control of {ordinary[0]} is dscp_only; expected --switch emulator, which routes by itself"
    return None


def unplannable_reason(scenario: Scenario) -> str | None:
    """Return which job must be measured on the emulator before it can be planned for, or None."""
    for number, job in enumerate(scenario.jobs):
        if job.profile is ProfileSource.MEASURED:
            return f"jobs[{number}].profile: only a run on the emulator measures jobs; expected told"
    return None


# The functions below import their engine only when it runs: each takes a while to import.


def _emulate(scenario: Scenario, policy: "Policy | str", on_progress: "Progress") -> RunResult:
    from experiments.scenarios.controller_process import ControllerProcessError
    from experiments.scenarios.emulated import run_on_emulator
    from hostlib.errors import ControllerError

    try:
        return asyncio.run(run_on_emulator(scenario, policy, on_progress=on_progress))
    except (ControllerError, ControllerProcessError, OSError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error


@contextmanager
def real_hosts(
    backend: Backend,
    scenario: Scenario,
    *,
    switch: SwitchKind = SwitchKind.EMULATOR,
    is_real_time: bool,
    keeps_ranks: bool = False,
) -> Iterator["RunPolicy"]:
    """Make hosts and switches, on which the returned function runs the scenario under one policy after the other.

    With ``keeps_ranks`` the ranks of PyTorch jobs go on from one policy to the next.

    Raises:
        RunError: The hosts cannot be made, or the switches do not start; of the function: the run failed.
    """
    from emulator.real_time import free_core
    from experiments.scenarios.real_hosts.running import RealHosts
    from experiments.scenarios.real_hosts.scaled_fabric import default_real_scale, scaled_fabric
    from topologies.mininet.mininet_namespaces import MininetNamespaces
    from topologies.namespaces.fabric_namespaces import FabricNamespaces
    from topologies.namespaces.host_network import DEFAULT_MTU_BYTES
    from topologies.openvswitch.port_queues import MTU_BYTES

    unscaled = scenario.topology.build()
    scale = scenario.scale or default_real_scale(unscaled, switch)
    with _failures_of_real_hosts():
        fabric = scaled_fabric(unscaled, scale)
        # Longer packets would take twice the memory of Open vSwitch's send buffer.
        mtu_bytes = MTU_BYTES if switch is SwitchKind.OVS else DEFAULT_MTU_BYTES
        has_switch_cables = switch is SwitchKind.OVS
        laboratory = (
            FabricNamespaces(
                fabric,
                mtu_bytes,
                receiving_core=free_core() if is_real_time else None,
                has_switch_cables=has_switch_cables,
            )
            if backend is Backend.NAMESPACES
            else MininetNamespaces(fabric, mtu_bytes, has_switch_cables=has_switch_cables)
        )
        with laboratory, asyncio.Runner() as runner:
            hosts = RealHosts(
                *(scenario, laboratory, fabric, scale),
                backend=backend,
                switch=switch,
                is_real_time=is_real_time,
                keeps_ranks=keeps_ranks,
            )

            def run(policy: "Policy | str", /, *, on_progress: "Progress") -> RunResult:
                with _failures_of_real_hosts():
                    return runner.run(hosts.run(policy, on_progress))

            runner.run(hosts.__aenter__())
            try:
                yield run
            except BaseException as error:
                runner.run(hosts.__aexit__(type(error), error, error.__traceback__))
                raise
            runner.run(hosts.__aexit__(None, None, None))


@contextmanager
def _failures_of_real_hosts() -> Iterator[None]:
    """Turn what can go wrong on real hosts into RunError."""
    from experiments.scenarios.controller_process import ControllerProcessError
    from experiments.scenarios.real_hosts.ranks import RanksError
    from experiments.scenarios.real_hosts.switches import SwitchesError
    from hostlib.errors import ControllerError
    from topologies.namespaces.host_network import NetworkError

    try:
        yield
    except (ControllerError, ControllerProcessError, NetworkError, RanksError, SwitchesError) as error:
        raise RunError(str(error)) from error
    except (OSError, ValueError) as error:  # a file that is not there, or a window in which no job holds a GPU
        raise RunError(str(error)) from error


def _simulate(
    scenario: Scenario, policy: "Policy | str", enforcement: Enforcement, on_progress: "Progress"
) -> RunResult:
    from controller.registry.errors import RegistrationError
    from experiments.scenarios.simulated import run_on_simulator

    try:
        return run_on_simulator(scenario, policy, enforcement, on_progress=on_progress)
    except (RegistrationError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error
