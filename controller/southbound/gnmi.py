"""Port states over gNMI: a subscription to every switch, kept as long as the controller runs (gNMI 0.8, section 3.5).

The ports of a switch are OpenConfig's interfaces: ``ifindex`` is the number that P4Runtime knows a port by,
``oper-status`` whether it is up.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import grpc.aio
from finsy import GNMIClient, GNMIPath, GNMIUpdate, GRPCStatusCode
from finsy.gnmiclient import GNMIClientError
from finsy.proto import gnmi

from controller.config import SwitchAddress
from controller.links.port_states import HeardPorts

_LOG = logging.getLogger(__name__)

_IF_INDEX = GNMIPath("interfaces/interface[name=*]/state/ifindex")
_OPER_STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
_UP = "UP"

_RETRY_S = 0.5
_UNSERVED_RETRY_S = 60.0
_CHANNEL_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))
"""A switch that is back is heard within a second or so; gRPC's own patience grows to two minutes."""


class GnmiPorts:
    """Tells ``heard`` what switches say of their ports; an async context manager, listening while entered."""

    def __init__(self, addresses: Sequence[SwitchAddress], heard: HeardPorts) -> None:
        self._addresses = tuple(addresses)
        self._heard = heard
        self._listening: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._listening = [asyncio.create_task(self._listen(address)) for address in self._addresses]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)

    async def _listen(self, address: SwitchAddress) -> None:
        """Subscribe, and again whenever the subscription ends; until cancelled."""
        is_served = True
        while True:
            try:
                async with grpc.aio.insecure_channel(address.gnmi or address.address, _CHANNEL_OPTIONS) as channel:
                    await self._subscribe(address.name, channel)
            except GNMIClientError as error:
                if error.code is GRPCStatusCode.UNIMPLEMENTED and is_served:
                    _LOG.warning("switch %s: it tells no port states: %s", address.name, error.message)
                is_served = error.code is not GRPCStatusCode.UNIMPLEMENTED
            except asyncio.CancelledError:
                # grpc.aio also cancels who reads from a call that is closed under it.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
            except Exception:
                # What is known of its ports must not stay as it is for good.
                _LOG.exception("switch %s: its port states are not heard; trying again", address.name)
            if is_served:
                self._heard.forget(address.name)
                await asyncio.sleep(_RETRY_S)
            else:
                self._heard.hear(address.name, {})
                await asyncio.sleep(_UNSERVED_RETRY_S)

    async def _subscribe(self, switch: str, channel: grpc.aio.Channel) -> None:
        """Tell all that a switch says, until it says no more. Raises GNMIClientError where the call fails."""
        client = GNMIClient("")
        await client.open(channel=channel)
        subscription = client.subscribe(prefix=GNMIPath(gnmi.Path(target=switch)))
        subscription.on_change(_IF_INDEX, _OPER_STATUS)
        interfaces = Interfaces()
        try:
            async for update in subscription.synchronize():
                interfaces.note(update)
            self._heard.hear(switch, interfaces.ports())
            async for update in subscription.updates():
                interfaces.note(update)
                self._heard.hear(switch, interfaces.ports())
        finally:
            subscription.cancel()


class Interfaces:
    """The interfaces of a switch by name: which port each is, and whether it is up."""

    def __init__(self) -> None:
        self._port_of: dict[str, int] = {}
        self._is_up: dict[str, bool] = {}

    def note(self, update: GNMIUpdate) -> None:
        """A leaf has this value now, or is gone; what nobody asked for, or can read, is passed over."""
        with suppress(KeyError, ValueError):
            name, leaf, value = update.path["name"], update.path.last, _scalar(update)
            if leaf == _OPER_STATUS.last:
                self._is_up.pop(name, None)
                if value is not None:
                    self._is_up[name] = value == _UP
            elif leaf == _IF_INDEX.last:
                self._port_of.pop(name, None)
                if value is not None:
                    self._port_of[name] = int(value)

    def ports(self) -> dict[int, bool]:
        """Whether each port is up, of those of which both is known."""
        return {port: self._is_up[name] for name, port in self._port_of.items() if name in self._is_up}


def _scalar(update: GNMIUpdate) -> str | int | None:
    """The value of a leaf, be it JSON or not; None where the leaf is gone. Raises ValueError for no scalar."""
    value = update.value
    if isinstance(value, bytes):
        value = json.loads(value)
    if value is not None and not isinstance(value, str | int):
        raise ValueError(f"{value!r} is no scalar")
    return value
