"""The switches of a fabric, each with memory for its program and with the ports that the fabric file gives it."""

from emulator.ageing import IdleTimers
from emulator.memory import Arena
from emulator.ports import spare_ports
from emulator.programs_by_switch import ProgramsBySwitch
from emulator.switch import EmulatedSwitch
from topologies.fabric import Fabric


def fabric_switches(
    fabric: Fabric, programs: ProgramsBySwitch, arena: Arena, cpu_port: int, timers: IdleTimers
) -> dict[str, EmulatedSwitch]:
    """Return the switches by name. Ports without a cable are down.

    Args:
        fabric: The topology.
        programs: Which switch has which program.
        arena: The memory of all switches.
        cpu_port: The port to the control plane.
        timers: Those of the fabric.
    """
    switches = {}
    for name in fabric.switches:
        spare = spare_ports(fabric, name)
        switches[name] = EmulatedSwitch(
            name,
            fabric.device_ids[name],
            arena,
            programs.resources_of(name),
            (*(link.source_port for link in fabric.links_from[name]), *spare),
            cpu_port,
            fabric.port_names[name],
            timers,
        )
        for port in spare:
            switches[name].set_port(port, False)
    return switches
