"""Sockets to other hosts: by the way on which memory can be lent, and those of flows from their source ports.

Switches find the path of a flow by its 5-tuple, so the controller says from which port it sends. Where that port cannot
be had, since something else has it still, the flow sends from another one: at its level, but on the path of the hash.
The host says so, and tries again every second.
"""

import errno
import socket
from collections.abc import Callable
from contextlib import suppress

from runtime import messages
from runtime.addresses import dialling
from runtime.executor.flows import Flow
from runtime.messages import Place

_IN_USE = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
"""A port is another socket's; or a connection has both ends still, or has ended so just now."""


class Dialling:
    """Dials other hosts from ``own``. ``tell`` sends a message to the server."""

    def __init__(self, own: Place, network_address: str, tell: Callable[[object], None]) -> None:
        self._own = own
        self._address = network_address.rpartition(":")[0]
        self._tell = tell

    def dial(self, place: Place) -> socket.socket:
        """Return a socket that connects to a host. Raises OSError."""
        if place.local_address and self._own.shares_memory_with(place):
            with suppress(OSError):
                return dialling(place.local_address)
        return dialling(place.address, self._address)

    def dial_for(self, flow: Flow, place: Place) -> socket.socket:
        """Return a socket for a flow, from its port if that can be had. Raises OSError."""
        found = self.dial_from_port(flow, place) if flow.source_port else None
        return self.dial(place) if found is None else found

    def dial_from_port(self, flow: Flow, place: Place) -> socket.socket | None:
        """Return a socket for a flow from its port, None where something has that. Raises OSError."""
        try:
            return dialling(place.address, self._address, flow.source_port)
        except OSError as error:
            if error.errno not in _IN_USE:
                raise
            self.note(flow, error.strerror or str(error))
            return None

    def note(self, flow: Flow, cause: str) -> None:
        """Tell the server why a flow does not send from its port; there is no cause where it does so again."""
        if cause != flow.cause:
            flow.cause = cause
            self._tell(messages.FlowSteered(flow.number, flow.source_port, cause))
