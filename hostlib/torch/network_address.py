"""The address and the interface by which this process reaches the others of its job."""

import fcntl
import logging
import os
import socket
import struct
from collections.abc import MutableMapping
from ipaddress import IPv4Address

_LOG = logging.getLogger(__name__)

_GET_ADDRESS = 0x8915
"""``SIOCGIFADDR`` (netdevice(7))."""
_REQUEST = struct.Struct("16s16x8x")
_ADDRESS_AT = slice(20, 24)
_ANY_PORT = 9


def own_address(peer: str) -> IPv4Address | None:
    """Return the address from which this machine sends to a peer; None where there is no way, or no IPv4 one."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect((peer, _ANY_PORT))  # sends nothing
            return IPv4Address(asking.getsockname()[0])
    except (OSError, ValueError):
        return None


def interface_of(address: IPv4Address) -> str | None:
    """Return the name of the interface that has an address; None where none has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, _GET_ADDRESS, _REQUEST.pack(name.encode()))
            except OSError:
                continue  # it has no address
            if IPv4Address(answer[_ADDRESS_AT]) == address:
                return name
    return None


def choose_interface(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have gloo use the interface that leads to the master, where it would fall back to the loopback interface.

    gloo takes the address of the machine's own name. In containers and network namespaces that is often unknown, or a
    loopback address, and then ranks of several machines do not find each other. A choice of the user's stays.
    """
    master = environment.get("MASTER_ADDR")
    if not master or environment.get("GLOO_SOCKET_IFNAME") or _own_name_leads_out():
        return
    address = own_address(master)
    name = None if address is None or address.is_loopback else interface_of(address)
    if name is not None:
        environment["GLOO_SOCKET_IFNAME"] = name
        _LOG.info("gloo uses the interface %s, because this machine's own name leads to no other machine", name)


def _own_name_leads_out() -> bool:
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        return False
    return any(not IPv4Address(str(address[0])).is_loopback for *_, address in found)
