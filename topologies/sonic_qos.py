"""The QoS part of SONiC's configuration database for an ordinary switch: DSCP chooses a queue, in strict priority.

Names of tables and fields are those of ``sonic-yang-models``: sonic-dscp-tc-map, sonic-tc-queue-map,
sonic-port-qos-map, sonic-scheduler and sonic-queue.
"""

from typing import Any

from topologies.fabric import Fabric

MAP = "TRAINYARD"
"""The name of the maps and of the scheduler."""

LEVELS = 8
"""Queues of a port, one for each level."""

_DSCPS = 64


class UnnamedPortError(ValueError):
    """A port of a switch has no name, or none by which the system of the switch could know it."""

    def __init__(self, switch: str, port: int, system: str) -> None:
        super().__init__(f"switch {switch}: port {port} has no name; {system} knows ports by names")


def sonic_qos(fabric: Fabric, switch: str) -> dict[str, Any]:
    """Return the tables for the ports of a switch that have cables, as ``config load`` takes them.

    A packet of DSCP class n waits in queue n, whatever its lower bits say. Queue 7 is served first.

    Raises:
        UnnamedPortError: The fabric does not say what a port is called.
    """
    names = fabric.port_names[switch]
    numbers = [link.source_port for link in fabric.links_from[switch]]
    if unnamed := [number for number in numbers if number not in names]:
        raise UnnamedPortError(switch, unnamed[0], "SONiC")
    ports = [names[number] for number in numbers]
    return {
        "DSCP_TO_TC_MAP": {MAP: {str(dscp): str(dscp * LEVELS // _DSCPS) for dscp in range(_DSCPS)}},
        "TC_TO_QUEUE_MAP": {MAP: {str(level): str(level) for level in range(LEVELS)}},
        "SCHEDULER": {MAP: {"type": "STRICT"}},
        "PORT_QOS_MAP": {port: {"dscp_to_tc_map": MAP, "tc_to_queue_map": MAP} for port in ports},
        "QUEUE": {f"{port}|{level}": {"scheduler": MAP} for port in ports for level in range(LEVELS)},
    }
