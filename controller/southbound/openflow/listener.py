"""Switches that connect to us by OpenFlow, as most do: each is handed over by its datapath id, strangers are refused.

Peers can be anything. Each connection has until the end of its handshake a bounded time and memory; so many may be in
it, of an address and in all. What is refused is counted by its reason, and logged without a flood.
"""

import asyncio
import logging
import socket
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from controller.access.bound_socket import bound_socket
from controller.access.tls_files import TlsFiles
from controller.southbound.openflow.certificates import require_name
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import AwayError, Misbehaviour, MisbehaviourError
from controller.southbound.openflow.connection import READ_BYTES
from controller.southbound.openflow.error_words import load_names
from controller.southbound.openflow.limits import LIMITS, ChannelLimits
from controller.southbound.openflow.opening import open_channel
from controller.southbound.openflow.refused_peers import RefusedPeers
from controller.southbound.openflow.switch_tls import SwitchTls
from hostlib.addresses import socket_path

_LOG = logging.getLogger(__name__)

_UNIX_SOCKET = "a Unix socket"
"""What stands for the address of peers that have none."""
_OUT_OF_FILES_S = 1.0
"""How long no connection is accepted where the process can have no more of them."""


class OpenFlowListener:
    """Waits for switches.

    A connection of a datapath id that is connected already replaces it where the old one no longer answers, and is
    refused otherwise.

    Args:
        datapath_ids: Those of the switches that may connect.
        on_channel: Called with each switch that has connected.
        tls: The files for TLS, where switches need certificates; None: plain text.
        limits: The patience with peers.
        certificate_names: The names that certificates have to be for, by datapath id, where one has to.

    Raises:
        UnusableFileError: The files cannot be used.
        MissingLibraryError: os-ken is not installed.
    """

    def __init__(
        self,
        datapath_ids: Iterable[int],
        on_channel: Callable[[OpenFlowChannel], None],
        tls: TlsFiles | None = None,
        limits: ChannelLimits = LIMITS,
        certificate_names: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        load_names()
        self._datapath_ids = frozenset(datapath_ids)
        self._certificate_names = certificate_names
        self._on_channel = on_channel
        self._tls = None if tls is None else SwitchTls(tls, is_server=True)
        self._limits = limits
        self._channels: dict[int, OpenFlowChannel] = {}
        self._serving: set[asyncio.Task[None]] = set()

    def follow(self, datapath_ids: Iterable[int], certificate_names: Mapping[int, str] = MappingProxyType({})) -> None:
        """Expect these switches from now on; connections of others end."""
        self._datapath_ids, self._certificate_names = frozenset(datapath_ids), certificate_names
        for datapath_id, channel in list(self._channels.items()):
            if datapath_id not in self._datapath_ids:
                channel.close("the fabric has the switch no longer")

    @asynccontextmanager
    async def serving(self, address: str) -> AsyncIterator[str]:
        """Listen at HOST:PORT or unix:/PATH while the context lasts; gives the address, with a port in place of 0.

        At the end of the context all connections end.

        Raises:
            OSError: The address cannot be bound.
        """
        with bound_socket(address, "openflow") as listener:
            listener.setblocking(False)
            accepting = asyncio.create_task(self._accept(listener, RefusedPeers()))
            try:
                has_port = socket_path(address) is None
                yield f"{address.rpartition(':')[0]}:{listener.getsockname()[1]}" if has_port else address
            finally:
                ending = [accepting, *self._serving]
                for task in ending:
                    task.cancel()
                await asyncio.gather(*ending, return_exceptions=True)

    async def _accept(self, listener: socket.socket, peers: RefusedPeers) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, origin = await loop.sock_accept(listener)
            except OSError as error:
                _LOG.warning("no connection over OpenFlow can be accepted: %s", error.strerror)
                await asyncio.sleep(_OUT_OF_FILES_S)
                continue
            host, peer = _names(origin)
            serving = asyncio.create_task(self._serve(accepted, host, peer, peers))
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)
            await asyncio.sleep(0)  # accepting does not wait while connections come

    async def _serve(self, accepted: socket.socket, host: str, peer: str, peers: RefusedPeers) -> None:
        """Take a connection from its handshake to its end."""
        try:
            with peers.handshake(host):
                channel = await self._admitted(accepted, peer)
        except MisbehaviourError as error:
            if error.reason is Misbehaviour.TOO_MANY:
                accepted.close()  # nothing else has it yet
            peers.tell(peer, host, error)
            return
        try:
            self._channels[channel.datapath_id] = channel
            self._on_channel(channel)
            await channel.run()
        except Exception:
            _LOG.exception("a connection over OpenFlow has failed")
        finally:
            channel.close("the controller has failed")
            if self._channels.get(channel.datapath_id) is channel:
                del self._channels[channel.datapath_id]

    async def _admitted(self, accepted: socket.socket, peer: str) -> OpenFlowChannel:
        """Return the channel of a switch that may connect. Raises MisbehaviourError."""
        try:
            channel = await open_channel(self._streams(accepted), peer, self._limits)
        except AwayError as error:
            raise MisbehaviourError(Misbehaviour.HUNG_UP, f"the handshake has ended: {error}") from error
        try:
            await self._check(channel)
        except BaseException:
            channel.close("refused")
            raise
        return channel

    async def _check(self, channel: OpenFlowChannel) -> None:
        """Raise MisbehaviourError, unless the switch may connect; an older connection of it ends that is dead."""
        while True:
            if channel.datapath_id not in self._datapath_ids:
                raise MisbehaviourError(
                    Misbehaviour.UNKNOWN, f"{channel.datapath_id:#x}: no switch has this datapath id"
                )
            wanted = self._certificate_names.get(channel.datapath_id)
            require_name(channel.datapath_id, channel.certificate_names, wanted)
            older = self._channels.get(channel.datapath_id)
            if older is None or not older.is_open:
                return
            if await older.answers(self._limits.quiet_s):
                problem = f"{channel.datapath_id:#x}: a switch of this datapath id is connected from {older.peer}"
                raise MisbehaviourError(Misbehaviour.DUPLICATE, problem)
            older.close("the switch has connected anew")

    async def _streams(self, accepted: socket.socket) -> tuple[StreamReader, StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = StreamReader(READ_BYTES, loop)
        protocol = StreamReaderProtocol(reader, loop=loop)
        context = None if self._tls is None else self._tls.context
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=context)
        return reader, StreamWriter(transport, protocol, reader, loop)


def _names(origin: object) -> tuple[str, str]:
    """Return the address of a peer, and what a log calls it, from what the socket says."""
    if not isinstance(origin, tuple):
        return _UNIX_SOCKET, _UNIX_SOCKET
    host, port, *_ = origin
    return host, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
