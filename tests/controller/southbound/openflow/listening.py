"""A listener for switches in tests, and how many peers it has refused for what."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from controller.access.tls_files import TlsFiles
from controller.metrics import REGISTRY
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import Misbehaviour
from controller.southbound.openflow.limits import LIMITS, ChannelLimits
from controller.southbound.openflow.listener import OpenFlowListener
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, flow_mod
from tests.patience import PATIENCE_S, until

PATIENT = replace(LIMITS, handshake_s=PATIENCE_S, answer_s=PATIENCE_S)
"""With these no test depends on how quick the machine is."""


def in_time(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test in an event loop."""
    asyncio.run(asyncio.wait_for(test(), PATIENCE_S))


def num_refused(reason: Misbehaviour) -> float:
    """How many connections were refused or cut off for this reason, since the process began."""
    name = "trainyard_openflow_refused_connections_total"
    return REGISTRY.get_sample_value(name, {"reason": reason}) or 0.0


@dataclass(frozen=True)
class Listening:
    """A listener, where it listens, and the channels that it has handed over."""

    listener: OpenFlowListener
    address: str
    channels: list[OpenFlowChannel]

    async def connect(self, switch: FakeSwitch) -> OpenFlowChannel:
        """Connect a switch, and return its channel."""
        num_before = len(self.channels)
        await switch.connect(self.address)
        await until(lambda: len(self.channels) > num_before)
        return self.channels[-1]


@asynccontextmanager
async def listening(
    datapath_ids: Iterable[int],
    limits: ChannelLimits = PATIENT,
    tls: TlsFiles | None = None,
    certificate_names: Mapping[int, str] = MappingProxyType({}),
) -> AsyncIterator[Listening]:
    """A listener for as long as the context lasts."""
    channels: list[OpenFlowChannel] = []
    listener = OpenFlowListener(datapath_ids, channels.append, tls, limits, certificate_names)
    async with listener.serving("127.0.0.1:0") as address:
        yield Listening(listener, address, channels)


@asynccontextmanager
async def connected(switch: FakeSwitch, limits: ChannelLimits = PATIENT) -> AsyncIterator[OpenFlowChannel]:
    """The channel of a switch that has connected."""
    async with listening([switch.datapath_id], limits) as at:
        yield await at.connect(switch)
    switch.close()


@asynccontextmanager
async def unharmed(limits: ChannelLimits = PATIENT) -> AsyncIterator[Listening]:
    """A listener for the switches 1 and 2; the switch 1 works before the context and after it.

    The limits are for those that come after it.
    """
    honest = FakeSwitch(1)
    async with listening([1, 2]) as at:
        channel = await at.connect(honest)
        at.listener._limits = limits
        yield at
        await channel.write([flow_mod(6, "still there")])
        assert honest.flows == ["still there"]
        honest.close()
