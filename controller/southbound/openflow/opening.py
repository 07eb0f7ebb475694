"""From a new connection to a channel: TLS, then the handshake, within a bounded time together."""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable

from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import AwayError, Misbehaviour, MisbehaviourError
from controller.southbound.openflow.connection import Connection, words_of
from controller.southbound.openflow.handshake import shake_hands
from controller.southbound.openflow.limits import ChannelLimits


async def open_channel(
    streams: Awaitable[tuple[StreamReader, StreamWriter]], peer: str, limits: ChannelLimits
) -> OpenFlowChannel:
    """Return a channel over a connection that ``streams`` makes, TLS included; ``peer`` is the peer's address.

    Raises:
        AwayError: The connection cannot be made, or ends.
        MisbehaviourError: The peer does not do as a switch of ours does, or not in time.
    """
    try:
        async with asyncio.timeout(limits.handshake_s):
            connection = Connection(*await streams, peer, limits)
            try:
                return OpenFlowChannel(connection, await shake_hands(connection), limits)
            except BaseException:
                connection.close()
                raise
    except TimeoutError as error:
        problem = f"no whole handshake within {limits.handshake_s:g} s"
        raise MisbehaviourError(Misbehaviour.SLOW, problem) from error
    except ssl.SSLError as error:
        raise MisbehaviourError(Misbehaviour.TLS, words_of(error)) from error
    except OSError as error:
        raise AwayError(words_of(error)) from error
