"""Read once over gNMI what ports a switch has: names, numbers, states and speeds (OpenConfig's interfaces)."""

import json
import re
from dataclasses import dataclass

from finsy import GNMIClient, GNMIPath, GNMIUpdate
from finsy.gnmiclient import GNMIClientError
from finsy.proto import gnmi

from controller.access.tls_files import TlsFiles
from controller.errors import DaemonError
from controller.southbound.gnmi import MAX_INTERFACES
from controller.southbound.tls import open_channel
from controller.switch_addresses import SwitchAddress
from topologies.addressing import MAX_PORTS_PER_SWITCH
from topologies.printable import printable

_IF_INDEX = GNMIPath("interfaces/interface[name=*]/state/ifindex")
_OPER_STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
_PORT_SPEED = GNMIPath("interfaces/interface[name=*]/ethernet/state/port-speed")
_SPEED = re.compile(r"SPEED_(\d{1,6})(M|G)B")
"""OpenConfig's names of speeds, such as ``SPEED_100GB``."""
_MAX_NAME = 64


class InterfacesError(DaemonError):
    """A switch does not tell its interfaces; the message says why."""


@dataclass(slots=True)
class FoundInterface:
    """An interface, as far as the switch tells; it counts as up where it does not say."""

    name: str
    number: int | None = None
    is_up: bool = True
    gbps: float | None = None


async def read_interfaces(address: SwitchAddress, tls: TlsFiles | None) -> list[FoundInterface]:
    """Return the interfaces of a switch that have port numbers, in order of these.

    Raises:
        InterfacesError: The switch does not tell them.
    """
    found: dict[str, FoundInterface] = {}
    try:
        async with open_channel(address.gnmi or address.address, tls, ()) as channel:
            client = GNMIClient("")
            await client.open(channel=channel)
            subscription = client.subscribe(prefix=GNMIPath(gnmi.Path(target=address.name)))
            subscription.once(_IF_INDEX, _OPER_STATUS, _PORT_SPEED)
            async for update in subscription.synchronize():
                _record(found, update)
    except GNMIClientError as error:
        raise InterfacesError(printable(error.message)) from error
    numbered = [each for each in found.values() if each.number is not None and 0 < each.number <= MAX_PORTS_PER_SWITCH]
    return sorted(numbered, key=lambda each: each.number or 0)


def gbps_of(speed: str) -> float | None:
    """Return the speed that a name of OpenConfig means; None where it means none."""
    match = _SPEED.fullmatch(speed.rpartition(":")[2])
    if match is None:
        return None
    return int(match[1]) / (1000 if match[2] == "M" else 1)


def _record(found: dict[str, FoundInterface], update: GNMIUpdate) -> None:
    """Record a leaf; leaves that are unknown or unreadable are left out."""
    try:
        name, leaf, value = printable(update.path["name"], _MAX_NAME).strip(), update.path.last, update.value
        if isinstance(value, bytes):
            value = json.loads(value)
        if not name or (len(found) >= MAX_INTERFACES and name not in found):
            return
        interface = found.setdefault(name, FoundInterface(name))
        if leaf == _IF_INDEX.last:
            interface.number = int(value)
        elif leaf == _OPER_STATUS.last:
            interface.is_up = value == "UP"
        elif leaf == _PORT_SPEED.last:
            interface.gbps = gbps_of(str(value))
    except (KeyError, TypeError, ValueError, RecursionError):
        return
