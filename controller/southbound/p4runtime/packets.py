"""Packets between the controller and the ports of switches: PacketIn and PacketOut."""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from finsy import P4ClientError, P4PacketIn, P4PacketOut, Switch
from grpc.aio import UsageError

from controller.background import BackgroundTask
from controller.southbound.packet_queue import PacketQueue

MAX_WAITING_PER_SWITCH = 1000
"""Packets to a switch that wait; further ones take the place of the oldest."""


@dataclass(slots=True)
class _Sink:
    """What finsy puts packets into that a switch hands up; it never says that it is full."""

    gate: "PacketGate"
    switch: str

    def full(self) -> bool:
        return False

    def put_nowait(self, packet: P4PacketIn) -> None:
        self.gate.receive(self.switch, packet)


@dataclass(slots=True)
class _Connection:
    """One connection to a switch, and the packets that wait for it: a switch that takes none holds up no other one."""

    switch: Switch
    waiting: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=MAX_WAITING_PER_SWITCH))
    sending: BackgroundTask = field(init=False)

    def __post_init__(self) -> None:
        self.sending = BackgroundTask(self._send_all)

    async def _send_all(self) -> None:
        while self.waiting:
            if not await _write(self.switch, *self.waiting.popleft()):
                self.waiting.clear()


class PacketGate(PacketQueue):
    """The packets that switches hand up, and the way back to their ports."""

    def __init__(self) -> None:
        super().__init__()
        self._connected: dict[str, _Connection] = {}

    def follow(self, switch: Switch) -> None:
        """Take the packets of a switch from now on, over all its connections."""
        sink: Any = _Sink(self, switch.name)
        switch._packet_queues.append((lambda _: True, sink))

    def connect(self, switch: Switch) -> None:
        """Handle a connection over which packets can be sent."""
        self._connected[switch.name] = _Connection(switch)

    def disconnect(self, name: str) -> None:
        """Handle the loss of a connection."""
        connection = self._connected.pop(name, None)
        if connection is not None:
            connection.waiting.clear()

    @property
    def connected(self) -> Collection[str]:
        """The switches that can send packets."""
        return self._connected.keys()

    def receive(self, switch: str, packet: P4PacketIn) -> None:
        """Keep a packet, or drop it."""
        self.keep(switch, packet.metadata.get("ingress_port"), packet.payload)

    def send(self, name: str, packets: Iterable[tuple[int, bytes]]) -> None:
        """Have frames sent from ports of a switch. What is lost on the way, or finds the switch away, is not known."""
        connection = self._connected.get(name)
        if connection is not None:
            connection.waiting.extend(packets)
            connection.sending.start()

    async def sent(self, name: str) -> None:
        """Wait until no frame waits for a switch."""
        connection = self._connected.get(name)
        if connection is not None:
            await connection.sending.join()


async def _write(switch: Switch, port: int, octets: bytes) -> bool:
    """Send a frame, as soon as the switch takes it; return False where the connection is closed."""
    message = P4PacketOut(octets, egress_port=port, padding=0).encode_update(switch.p4info)
    client = switch._p4client
    if client is None:
        return False
    try:
        await client.send(message)
    except (P4ClientError, AssertionError, UsageError, asyncio.InvalidStateError):
        # finsy and gRPC raise these when the connection is closed under a request.
        return False
    except asyncio.CancelledError:
        # gRPC raises this where the stream was cancelled, though the task that writes to it was not.
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return False
    return True
