"""Switches of a fabric as bridges of Open vSwitch, which forward nothing but what their controller has written."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_BACKOFF_MS = 1000
"""A bridge whose controller is away looks for it so often, at the least; Open vSwitch's own bound is 8 s."""

_VERSIONS = "OpenFlow13,OpenFlow15"
_INTERFACE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


@dataclass(frozen=True)
class BridgePort:
    """A port of a switch: its interface, and what its cable carries."""

    interface: str
    rate_bps: float


@dataclass(frozen=True)
class Bridge:
    """A switch as a bridge.

    Attributes:
        name: What Open vSwitch calls it.
        datapath_id: Its OpenFlow datapath id.
        ports: Its ports, by number.
    """

    name: str
    datapath_id: int
    ports: Mapping[int, BridgePort]


def fabric_bridges(described: Mapping[str, Any], interfaces: Mapping[tuple[str, int], str]) -> dict[str, Bridge]:
    """Return the bridges of a fabric, by switch.

    A bridge is called after its switch. Where Linux takes a switch's name for no interface, or it is that of one, all
    have positions for names: ``s0``. The datapath id is the switch's device id.

    Args:
        described: The fabric, as ``topologies.description`` has it.
        interfaces: The interface of each port of a switch, by switch and number of the port.
    """
    names = [switch["name"] for switch in described["switches"]]
    is_usable = all(is_interface_name(name) and name not in interfaces.values() for name in names)
    ports: dict[str, dict[int, BridgePort]] = {name: {} for name in names}
    for cable in described["cables"]:
        for node, number in cable["ends"]:
            if node in ports:
                ports[node][number] = BridgePort(interfaces[node, number], cable["rate_bps"])
    return {
        switch["name"]: Bridge(
            switch["name"] if is_usable else f"s{position}", switch["device_id"], ports[switch["name"]]
        )
        for position, switch in enumerate(described["switches"])
    }


def bridge_commands(bridge: Bridge, controller: str | None = None, *, datapath: str = "netdev") -> list[str]:
    """Return the words of one ``ovs-vsctl`` command that adds a bridge.

    Ports have the numbers that the fabric gives them. Without a controller nothing is forwarded (``fail_mode=secure``),
    and no hidden flow entries let a controller be reached by the ports (``disable-in-band``). Open vSwitch leaves the
    queues of ports to others (``linux-noop``).

    Args:
        bridge: The bridge.
        controller: Where its controller is, such as ``tcp:192.0.2.1:6653`` or ``unix:/run/openflow.sock``; None: none.
        datapath: ``netdev``, in user space; ``system``, in the kernel; or ``dummy``, which is ``netdev`` without a
            network interface for the bridge itself.
    """
    return [word for group in _commands(bridge, controller, datapath) for word in ("--", *group)][1:]


def _commands(bridge: Bridge, controller: str | None, datapath: str) -> Iterator[tuple[str, ...]]:
    name = bridge.name
    yield "add-br", name
    yield (
        *("set", "bridge", name, f"datapath_type={datapath}", f"protocols={_VERSIONS}", "fail_mode=secure"),
        *("other-config:disable-in-band=true", f"other-config:datapath-id={bridge.datapath_id:016x}"),
    )
    for number, port in bridge.ports.items():
        interface, queues = port.interface, f"@queues{number}"
        yield "add-port", name, interface
        yield "set", "interface", interface, f"ofport_request={number}"
        yield f"--id={queues}", "create", "qos", "type=linux-noop"
        yield "set", "port", interface, f"qos={queues}"
    if controller is not None:
        yield "set-controller", name, controller
        yield "set", "controller", name, f"max_backoff={LONGEST_BACKOFF_MS}", "connection_mode=out-of-band"


def is_interface_name(name: str) -> bool:
    """Tell whether Linux, and so Open vSwitch, takes this as the name of an interface."""
    return _INTERFACE_NAME.fullmatch(name) is not None
