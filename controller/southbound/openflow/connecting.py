"""Switches that listen for us by OpenFlow: the controller connects to them, and connects again as soon as it can."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable

from controller.access.bound_socket import host_and_port
from controller.access.tls_files import TlsFiles
from controller.metrics import OPENFLOW_REFUSED
from controller.southbound.openflow.certificates import require_name
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import AwayError, Misbehaviour, MisbehaviourError
from controller.southbound.openflow.connection import READ_BYTES
from controller.southbound.openflow.error_words import load_names
from controller.southbound.openflow.limits import LIMITS, ChannelLimits
from controller.southbound.openflow.opening import open_channel
from controller.southbound.openflow.switch_tls import SwitchTls

_RETRY_S = 0.5
_LAST_RETRY_S = 8.0
_SHORT_S = 2.0
"""A connection that ends sooner is short. After each one to a peer that answers, the next attempt waits longer."""


async def keep_connected(
    address: str,
    datapath_id: int,
    on_channel: Callable[[OpenFlowChannel], None],
    on_end: Callable[[str], None],
    tls: TlsFiles | None = None,
    limits: ChannelLimits = LIMITS,
    certificate_name: str | None = None,
) -> None:
    """Connect to HOST:PORT, and connect again whenever the connection is lost, until cancelled.

    While nothing answers it tries every half second; after short connections it waits longer. ``on_end`` is called
    with the reason whenever an attempt or a connection has ended. A switch with another datapath id is
    refused, or with a certificate that is not for ``certificate_name``.

    Raises:
        UnusableFileError: The files for TLS cannot be used at first.
        MissingLibraryError: os-ken is not installed.
    """
    load_names()
    contexts = None if tls is None else SwitchTls(tls, is_server=False)
    loop, retry_s = asyncio.get_running_loop(), _RETRY_S
    while True:
        began_s, is_away = loop.time(), False
        try:
            channel = await open_channel(_streams(address, contexts), address, limits)
            _check(channel, datapath_id, certificate_name)
            on_channel(channel)
            await channel.run()
            reason = channel.closed_because
        except AwayError as error:
            reason, is_away = str(error), True
        except MisbehaviourError as error:
            OPENFLOW_REFUSED.labels(error.reason).inc()
            reason = str(error)
        on_end(reason)
        if is_away or loop.time() - began_s >= _SHORT_S:
            retry_s = _RETRY_S
        await asyncio.sleep(retry_s)
        if not is_away:
            retry_s = min(2 * retry_s, _LAST_RETRY_S)


def _check(channel: OpenFlowChannel, datapath_id: int, certificate_name: str | None) -> None:
    """Close the channel and raise MisbehaviourError where it is of another switch."""
    try:
        if channel.datapath_id != datapath_id:
            problem = f"the switch has the datapath id {channel.datapath_id:#x}, not {datapath_id:#x}"
            raise MisbehaviourError(Misbehaviour.UNKNOWN, problem)
        require_name(datapath_id, channel.certificate_names, certificate_name)
    except MisbehaviourError as error:
        channel.close(str(error))
        raise


async def _streams(address: str, contexts: SwitchTls | None) -> tuple[StreamReader, StreamWriter]:
    host, port = host_and_port(address)
    context = None if contexts is None else contexts.context
    return await asyncio.open_connection(host, port, limit=READ_BYTES, ssl=context)
