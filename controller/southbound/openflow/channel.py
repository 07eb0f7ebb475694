"""A connected switch that speaks OpenFlow 1.3 or 1.5: messages to it, their answers, and what it tells by itself.

Example::

    def on_channel(channel: OpenFlowChannel) -> None:  # see listener.py and connecting.py
        channel.on_closed = lambda reason: print(reason)
        tasks.create_task(program(channel))

    async def program(channel: OpenFlowChannel) -> None:
        await channel.claim(generation_id=term)
        await channel.write([encode_flow_mod(...), ...])
        replies = await channel.request(flows_request(cookie, mask, channel.version))
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from controller.errors import DaemonError
from controller.metrics import OPENFLOW_REFUSED
from controller.southbound.openflow.channel_errors import (
    AwayError,
    Misbehaviour,
    MisbehaviourError,
    RefusedError,
    StaleError,
)
from controller.southbound.openflow.connection import Connection
from controller.southbound.openflow.control_messages import (
    ControlType,
    Role,
    control_message,
    echo_reply,
    role_of,
    role_request,
    tell_roles,
)
from controller.southbound.openflow.error_words import BAD_REQUEST, ROLE_REQUEST_FAILED
from controller.southbound.openflow.exchanges import Exchanges
from controller.southbound.openflow.handshake import Greeting, check_port
from controller.southbound.openflow.limits import LIMITS, ChannelLimits
from controller.southbound.openflow.messages import LAST_PORT, MessageType, Version
from controller.southbound.openflow.port_messages import PortChange, PortDescription, decode_port_status
from controller.southbound.openflow.requests import Requests

_AT_ONCE = 1_000
"""So many messages are taken before others have the event loop."""
_MOST_LATE_BYTES = 1024 * 1024
"""Where more waits for the switch already, ``send`` sends nothing."""
_IS_SLAVE, _IS_STALE = 10, 0
_GENERATION_IDS = 1 << 64
_ECHO_BYTES = b"trainyard"


class OpenFlowChannel:
    """A connection to a switch after the handshake. Whoever gets it sets the callbacks before it awaits anything.

    Callbacks run in the event loop and return soon; a DaemonError that one raises ends the connection. ``on_ports``
    is called when ``ports`` have changed, ``on_packet_in`` with a whole packet-in message, ``on_role`` where the
    switch tells that our role has changed (1.5 alone; Open vSwitch does after ``claim``), and ``on_closed`` once,
    with the reason.

    Args:
        connection: The connection.
        greeting: What the switch has said of itself in the handshake.
        limits: The patience with the switch.
    """

    def __init__(self, connection: Connection, greeting: Greeting, limits: ChannelLimits = LIMITS) -> None:
        self.version = greeting.version
        """4 (OpenFlow 1.3) or 6 (1.5), as in headers."""
        self.datapath_id = greeting.datapath_id
        self.peer = connection.peer
        """The address of the switch."""
        self.certificate_names = connection.certificate_names
        self.closed_because = ""
        """Why the connection has ended; empty while it lasts."""
        self.on_ports: Callable[[], None] = lambda: None
        self.on_packet_in: Callable[[bytes], None] = lambda _message: None
        self.on_role: Callable[[Role], None] = lambda _role: None
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self._connection = connection
        self._limits = limits
        self._ports = dict(greeting.ports)
        self._exchanges = Exchanges(limits.answer_bytes)
        self._requests = Requests(connection, self.version, self._exchanges, limits.answer_s, self._give_up)
        self._tells_roles = False
        self._num_heard = 0
        self._have_ports_changed = False

    @property
    def ports(self) -> Mapping[int, PortDescription]:
        """The ports by number, as the switch has described them last."""
        return MappingProxyType(self._ports)

    @property
    def is_open(self) -> bool:
        """Whether the switch is connected still."""
        return not self.closed_because

    async def request(self, message: bytes) -> list[bytes]:
        """Send a message that has an answer, and return all parts of the answer. Several may wait at a time.

        Raises:
            RefusedError: The switch answers with an error.
            AwayError: The connection is lost, or the switch does not answer in time.
        """
        return await self._requests.request(message)

    async def settle(self) -> None:
        """Wait until the switch has carried out what was written, also where nobody waits for it any longer.

        Raises:
            AwayError: The connection is lost, or the switch does not answer in time.
        """
        await self._requests.settle()

    async def write(self, messages: Sequence[bytes], *, bundle: bool = False) -> None:
        """Send messages without answers, such as flow mods; return when the switch has carried all of them out.

        The channel gives each its transaction id. The event loop stays free meanwhile. Writes follow one another.

        Args:
            messages: As the encoders make them, of the channel's version.
            bundle: Carry out all of them at once or none, where the switch has bundles (OpenFlow 1.4, or the ONF's
                extension of 1.3); where it has none, one by one.

        Raises:
            RefusedError: The switch refuses some.
            StaleError: It refuses since another controller is its master.
            AwayError: The connection is lost, or the switch does not answer in time; it may have carried out some.
        """
        if not messages:
            return
        try:
            await (self._requests.write_bundle if bundle else self._requests.write)(messages)
        except RefusedError as refused:
            reasons = (*refused.refusals.values(), *refused.others)
            if any((each.kind, each.code) == (BAD_REQUEST, _IS_SLAVE) for each in reasons):
                raise StaleError("another controller is the master of the switch") from refused
            raise

    def send(self, messages: Iterable[bytes]) -> None:
        """Send messages, such as packet-outs, without waiting; they are lost where the switch is away or is slow."""
        with suppress(AwayError):
            for message in messages:
                if self._connection.num_unread > _MOST_LATE_BYTES:
                    return
                self._requests.send(message)

    async def claim(self, generation_id: int) -> None:
        """Become the switch's master; who was it can write no more. Once more with the same id: ask whether we are it.

        Raises:
            StaleError: Another controller has claimed it with a newer generation id (64 bits, they wrap around).
            RefusedError: The switch refuses for another reason.
            AwayError: The connection is lost.
        """
        if self.version >= Version.OPENFLOW_1_5 and not self._tells_roles:
            self._tells_roles = True
            with suppress(RefusedError):  # a switch need not have this
                await self.write([tell_roles()])
        try:
            answer = await self.request(role_request(self.version, Role.MASTER, generation_id % _GENERATION_IDS))
        except RefusedError as refused:
            if (refused.refusals[0].kind, refused.refusals[0].code) == (ROLE_REQUEST_FAILED, _IS_STALE):
                raise StaleError("another controller has claimed the switch later") from refused
            raise
        try:
            role = role_of(answer[0])
        except MisbehaviourError as error:
            self._give_up(error)
            raise AwayError(str(error)) from error
        if role is not Role.MASTER:
            raise StaleError(f"the switch gives the role {role.name.lower()}")

    async def answers(self, limit_s: float) -> bool:
        """Tell whether the switch answers an echo within so long."""
        try:
            async with asyncio.timeout(limit_s):
                await self.request(control_message(self.version, ControlType.ECHO_REQUEST, _ECHO_BYTES))
        except (TimeoutError, DaemonError):
            return False
        return True

    def close(self, reason: str) -> None:
        """End the connection; ``on_closed`` is called before this returns, unless it was closed before."""
        if self.closed_because:
            return
        self.closed_because = reason
        self._requests.end(reason)
        self._connection.close()
        self.on_closed(reason)

    async def run(self) -> None:
        """Take what the switch sends until the connection ends, which it does at the latest when this is cancelled.

        To be called once, by whoever has made the channel.
        """
        watching = asyncio.create_task(self._watch())
        reason = "the controller has closed the connection"
        try:
            await self._listen()
        except MisbehaviourError as error:
            self._give_up(error)
        except AwayError as error:
            reason = str(error)
        except DaemonError as error:
            self._give_up(MisbehaviourError(Misbehaviour.GARBAGE, str(error)))
        finally:
            watching.cancel()
            self.close(reason)

    def _give_up(self, error: MisbehaviourError) -> None:
        """End the connection with a switch that does not do as it should."""
        if self.is_open:
            OPENFLOW_REFUSED.labels(error.reason).inc()
            self.close(str(error))

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        began_s, allowed = loop.time(), self._limits.messages_per_s
        while self.is_open:
            messages = await self._connection.receive(_AT_ONCE)
            for message in messages:
                if self.is_open:  # a callback may have closed it
                    self._take(message)
            if self._have_ports_changed:
                self._have_ports_changed = False
                self.on_ports()
            self._num_heard += len(messages)
            now_s = loop.time()
            gained = (now_s - began_s) * self._limits.messages_per_s
            began_s, allowed = now_s, min(allowed + gained, self._limits.messages_per_s) - len(messages)
            await asyncio.sleep(max(0.0, -allowed / self._limits.messages_per_s))

    def _take(self, message: bytes) -> None:
        match message[1]:
            case ControlType.ECHO_REQUEST:
                self._requests.send(echo_reply(message))
            case MessageType.PORT_STATUS:
                self._take_port(message)
            case MessageType.PACKET_IN:
                self.on_packet_in(message)
            case ControlType.ROLE_STATUS:
                self.on_role(role_of(message))
            case _:
                self._exchanges.take(message)

    def _take_port(self, message: bytes) -> None:
        change, port = decode_port_status(message, self.version)
        if port.number > LAST_PORT or self._ports.get(port.number) == (None if change is PortChange.DELETED else port):
            return
        if change is PortChange.DELETED:
            del self._ports[port.number]
        else:
            check_port(self.datapath_id, port, len(self._ports) + (port.number not in self._ports))
            self._ports[port.number] = port
        self._have_ports_changed = True

    async def _watch(self) -> None:
        """Ask a quiet switch for an echo, and give a silent one up."""
        quiet_s, silent_s, now_s = self._limits.quiet_s, self._limits.silent_s, asyncio.get_running_loop().time
        with suppress(AwayError):
            while True:
                num_heard = self._num_heard
                await asyncio.sleep(quiet_s)
                if self._num_heard != num_heard:
                    continue
                self._requests.send(control_message(self.version, ControlType.ECHO_REQUEST, _ECHO_BYTES))
                last_s = now_s() + silent_s - quiet_s
                while self._num_heard == num_heard:
                    if now_s() >= last_s:
                        self._give_up(MisbehaviourError(Misbehaviour.SILENT, f"has said nothing for {silent_s:g} s"))
                        return
                    await asyncio.sleep(min(quiet_s, last_s - now_s()))
