"""Subscribe to the port states of every switch over gNMI, as long as the controller runs (gNMI 0.8, section 3.5).

The ports of a switch are OpenConfig's interfaces: ``ifindex`` is the number that P4Runtime knows a port by, and
``oper-status`` tells whether it is up.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import grpc.aio
from finsy import GNMIClient, GNMIPath, GNMIUpdate, GRPCStatusCode
from finsy.gnmiclient import GNMIClientError
from finsy.proto import gnmi

from controller.access.tls_files import TlsFiles
from controller.events import BurstLog, EventKind
from controller.links.port_states import PortStateTable
from controller.southbound.tls import open_channel
from controller.switch_addresses import SwitchAddress
from topologies.printable import printable

_LOG = logging.getLogger(__name__)

_IF_INDEX = GNMIPath("interfaces/interface[name=*]/state/ifindex")
_OPER_STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
_UP = "UP"

MAX_INTERFACES = 4096
"""Interfaces of a switch; further ones are ignored."""

_RETRY_S = 0.5
_UNSERVED_RETRY_S = 60.0
_CHANNEL_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))
"""A switch that returns is connected within about a second; gRPC's default back-off grows to two minutes."""


class GnmiPortMonitor:
    """Keeps a PortStateTable up to date with what switches report, while its context is entered.

    ports = PortStateTable(switch.name for switch in addresses)
    async with GnmiPortMonitor(addresses, ports):
        await ports.all_ports()
    """

    def __init__(self, addresses: Sequence[SwitchAddress], ports: PortStateTable, tls: TlsFiles | None = None) -> None:
        self._addresses = tuple(addresses)
        self._tls = tls
        self._ports = ports
        self._listening: dict[str, asyncio.Task[None]] = {}
        self._log = BurstLog(_LOG, logging.WARNING)

    async def __aenter__(self) -> Self:
        await self.follow(self._addresses)
        return self

    async def follow(self, addresses: Iterable[SwitchAddress]) -> None:
        """Listen to these switches from now on, and to no others; to those that stay without a break."""
        wanted = {address.name: address for address in addresses}
        gone = [self._listening.pop(name) for name in [*self._listening] if name not in wanted]
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        for name, address in wanted.items():
            if name not in self._listening:
                self._listening[name] = asyncio.create_task(self._listen(address))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.follow(())

    async def _listen(self, address: SwitchAddress) -> None:
        """Subscribe, and again whenever the subscription ends, until cancelled."""
        is_served, problem = True, ""
        while True:
            try:
                async with open_channel(address.gnmi or address.address, self._tls, _CHANNEL_OPTIONS) as channel:
                    await self._subscribe(address.name, channel)
                problem = ""
            except GNMIClientError as error:
                if error.code is GRPCStatusCode.UNIMPLEMENTED and is_served:
                    self._tell(address.name, "it tells no port states", printable(error.message))
                is_served = error.code is not GRPCStatusCode.UNIMPLEMENTED
            except asyncio.CancelledError:
                # grpc.aio also cancels the reader of a call that is closed under it.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
            except Exception as error:
                # The known port states must not stay forever. A switch may answer with anything.
                if problem != (problem := printable(f"{type(error).__name__}: {error}")):
                    self._tell(address.name, "its port states are not heard; trying again", problem)
            if is_served:
                self._ports.remove(address.name)
                await asyncio.sleep(_RETRY_S)
            else:
                self._ports.set_ports(address.name, {})
                await asyncio.sleep(_UNSERVED_RETRY_S)

    def _tell(self, switch: str, what: str, reason: str) -> None:
        words = "switch %s: %s: %s"
        self._log.tell(EventKind.PORTS_UNKNOWN, words, switch, what, reason, switch=switch, reason=reason)

    async def _subscribe(self, switch: str, channel: grpc.aio.Channel) -> None:
        """Pass on all that a switch reports until the subscription ends.

        Raises:
            GNMIClientError: The call failed.
        """
        client = GNMIClient("")
        await client.open(channel=channel)
        subscription = client.subscribe(prefix=GNMIPath(gnmi.Path(target=switch)))
        subscription.on_change(_IF_INDEX, _OPER_STATUS)
        interfaces = InterfaceTable()
        try:
            async for update in subscription.synchronize():
                interfaces.record(update)
            self._ports.set_ports(switch, interfaces.ports())
            async for update in subscription.updates():
                interfaces.record(update)
                self._ports.set_ports(switch, interfaces.ports())
        finally:
            subscription.cancel()


class InterfaceTable:
    """The interfaces of a switch by name: the port number and state of each."""

    def __init__(self) -> None:
        self._port_of: dict[str, int] = {}
        self._is_up: dict[str, bool] = {}

    def record(self, update: GNMIUpdate) -> None:
        """Record the new value of a leaf, or its deletion; ignore leaves that are unknown or unreadable."""
        with suppress(KeyError, ValueError, RecursionError):
            name, leaf, value = update.path["name"], update.path.last, _scalar(update)
            table = self._is_up if leaf == _OPER_STATUS.last else self._port_of
            if len(table) >= MAX_INTERFACES and name not in table:
                return
            if leaf == _OPER_STATUS.last:
                self._is_up.pop(name, None)
                if value is not None:
                    self._is_up[name] = value == _UP
            elif leaf == _IF_INDEX.last:
                self._port_of.pop(name, None)
                if value is not None:
                    self._port_of[name] = int(value)

    def ports(self) -> dict[int, bool]:
        """Return whether each port is up, for ports of which number and state are known."""
        return {port: self._is_up[name] for name, port in self._port_of.items() if name in self._is_up}


def _scalar(update: GNMIUpdate) -> str | int | None:
    """Return the value of a leaf, JSON or not; None if the leaf was deleted.

    Raises:
        ValueError: The value is no scalar.
    """
    value = update.value
    if isinstance(value, bytes):
        value = json.loads(value)
    if value is not None and not isinstance(value, str | int):
        raise ValueError(f"{value!r} is no scalar")
    return value
