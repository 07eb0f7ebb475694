"""The connections to the switches of a fabric that speak OpenFlow, made by either side, and their ports' states."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from controller.events import BurstLog, EventKind
from controller.links.port_states import PortStateTable
from controller.notice import Notice
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.connecting import keep_connected
from controller.southbound.openflow.error_words import load_names
from controller.southbound.openflow.listener import OpenFlowListener
from controller.switch_addresses import OpenFlowConfig, SwitchAddress

_LOG = logging.getLogger(__name__)

_RETRY_S = 2.0
"""When a switch is tried again that could not even be tried."""


class OpenFlowConnections:
    """Keeps switches connected while its context is entered, and hands each channel over by the switch's name.

    Attributes:
        on_channel: Called with each switch that has connected, and its channel.
        on_closed: Called with each switch that is no longer connected, and the reason.
        on_failed: Called with each switch that could not be reached, and the reason.
        channels: The connected switches.
        listens_at: Where switches are waited for; empty where none connects by itself.
    """

    def __init__(self, addresses: Iterable[SwitchAddress], config: OpenFlowConfig) -> None:
        self.on_channel: Callable[[str, OpenFlowChannel], None] = lambda _name, _channel: None
        self.on_closed: Callable[[str, str], None] = lambda _name, _reason: None
        self.on_failed: Callable[[str, str], None] = lambda _name, _reason: None
        self.channels: dict[str, OpenFlowChannel] = {}
        self.listens_at = ""
        self._config = config
        self._names: Mapping[int, str] = {}
        self._addresses: tuple[SwitchAddress, ...] = tuple(addresses)
        self._connecting: dict[str, asyncio.Task[None]] = {}
        self._listener: OpenFlowListener | None = None
        self._stack = AsyncExitStack()
        self._ports: PortStateTable | None = None
        self._connected = Notice()
        self._log = BurstLog(_LOG)

    @asynccontextmanager
    async def connected(
        self, ports: PortStateTable | None, addresses: Iterable[SwitchAddress] | None = None
    ) -> AsyncIterator[None]:
        """Connect, and be connected to while the context lasts; ``ports`` then has the states of all ports.

        ``addresses`` are the switches; None: those that it was made for.

        Raises:
            MissingLibraryError: os-ken is not installed.
            OSError: The address for switches cannot be bound.
            UnusableFileError: The files for TLS cannot be used.
        """
        # Beside the event loop, as it takes a third of a second.
        await asyncio.to_thread(load_names)
        self._ports = ports
        async with self._stack:
            try:
                await self.follow(self._addresses if addresses is None else addresses)
                yield
            finally:
                await self._end(self._connecting)

    async def wait(self, limit_s: float) -> None:
        """Wait until all switches are connected, but not longer than so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while len(self.channels) < len(self._addresses):
                    await self._connected.next.wait()

    async def follow(self, addresses: Iterable[SwitchAddress]) -> None:
        """Have connections to these switches from now on, and to no others; those of switches that stay go on."""
        self._addresses = tuple(addresses)
        self._names = {address.device: address.name for address in self._addresses}
        devices = {each.name: each.device for each in self._addresses}
        names = {each.name: each.openflow.certificate_name for each in self._addresses if each.openflow is not None}
        wanted = {each.name: each.openflow.connect for each in self._addresses if each.openflow is not None}
        for name, channel in list(self.channels.items()):
            if self._names.get(channel.datapath_id) != name:
                channel.close("the fabric has no switch of this name and datapath id any longer")
        await self._end([name for name in self._connecting if name not in wanted])
        for name, place in wanted.items():
            if place is not None and name not in self._connecting:
                self._connecting[name] = asyncio.create_task(self._connect(name, place, devices[name], names[name]))
        passive = [each.device for each in self._addresses if wanted.get(each.name) is None]
        certificates = {devices[name]: wanted_name for name, wanted_name in names.items() if wanted_name is not None}
        if self._listener is not None:
            self._listener.follow(passive, certificates)
        elif passive:
            self._listener = OpenFlowListener(passive, self._take, self._config.tls, certificate_names=certificates)
            serving = self._listener.serving(self._config.listen)
            self.listens_at = await self._stack.enter_async_context(serving)
            _LOG.info("switches that speak OpenFlow are waited for at %s", self.listens_at)

    def _take(self, channel: OpenFlowChannel) -> None:
        """Take a channel that has just been opened."""
        name = self._names.get(channel.datapath_id)
        if name is None:
            channel.close("the fabric has the switch no longer")
            return
        self.channels[name] = channel
        self._connected.tell()
        channel.on_closed = partial(self._lose, name, channel)
        channel.on_ports = partial(self._tell_ports, name, channel)
        self._tell_ports(name, channel)
        self.on_channel(name, channel)

    def _lose(self, name: str, channel: OpenFlowChannel, reason: str) -> None:
        if self.channels.get(name) is channel:
            del self.channels[name]
            if self._ports is not None:
                self._ports.remove(name)
            self.on_closed(name, reason)

    def _tell_ports(self, name: str, channel: OpenFlowChannel) -> None:
        if self._ports is not None and self.channels.get(name) is channel:
            self._ports.set_ports(name, {number: port.is_up for number, port in channel.ports.items()})

    async def _connect(self, name: str, place: str, datapath_id: int, certificate_name: str | None) -> None:
        """Keep a switch connected, also where files for TLS become usable only later."""
        while True:
            try:
                on_end = partial(self.on_failed, name)
                await keep_connected(
                    place, datapath_id, self._take, on_end, self._config.tls, certificate_name=certificate_name
                )
            except Exception as error:
                self._log.tell(EventKind.SWITCH_AWAY, "switch %s: %s", name, error, switch=name)
                self.on_failed(name, str(error))
            await asyncio.sleep(_RETRY_S)

    async def _end(self, names: Iterable[str]) -> None:
        ending = [self._connecting.pop(name) for name in list(names)]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
