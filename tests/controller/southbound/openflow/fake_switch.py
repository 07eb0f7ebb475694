"""A small switch that speaks OpenFlow: it does as it is told, also what no honest switch does."""

import asyncio
import ssl
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_HEADER = struct.Struct("!BBHI")
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER, FEATURES_REQUEST, FEATURES_REPLY = range(7)
PACKET_IN, PORT_STATUS, PACKET_OUT, FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 10, 12, 13, 14, 18, 19
BARRIER_REQUEST, BARRIER_REPLY, ROLE_REQUEST, ROLE_REPLY, ROLE_STATUS = 20, 21, 24, 25, 30
BUNDLE_CONTROL, BUNDLE_ADD = 33, 34
_PORT_DESCRIPTIONS = 13


@dataclass(frozen=True)
class Received:
    """A message of the controller."""

    version: int
    kind: int
    xid: int
    body: bytes


def message(version: int, kind: int, xid: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(version, kind, _HEADER.size + len(body), xid) + body


def hello(version: int, *versions: int) -> bytes:
    """A hello that lists versions, or none of them."""
    bitmap = struct.pack("!HHI", 1, 8, sum(1 << each for each in versions)) if versions else b""
    return message(version, HELLO, 7, bitmap)


def flow_mod(version: int, text: str) -> bytes:
    """What a switch takes for a flow mod; the fake one does not look into it."""
    return message(version, FLOW_MOD, 0, text.encode())


def port(version: int, number: int, *, is_up: bool = True) -> bytes:
    mac, name, state = bytes(5) + bytes((number % 256,)), f"p{number}".encode().ljust(16, b"\0"), int(not is_up)
    if version == 4:
        return struct.pack("!I4x6s2x16sII24x", number, mac, name, 0, state)
    return struct.pack("!IH2x6s2x16sII", number, 40, mac, name, 0, state)


class FakeSwitch:
    """A switch. What it answers is in ``answers``, by type of message; an entry may be replaced, or taken away.

    ``refusals`` has the type and code of the error for a flow mod, by its text.
    """

    def __init__(self, datapath_id: int = 1, version: int = 6, ports: Iterable[int] = (1, 2)) -> None:
        self.version = version
        self.datapath_id = datapath_id
        self.hello = hello(version, version)
        self.ports = [port(version, number) for number in ports]
        self.auxiliary_id = 0
        self.received: list[Received] = []
        self.flows: list[str] = []
        self.refusals: dict[str, tuple[int, int]] = {}
        self.generation_id: int | None = None
        self.bundles: dict[int, list[Received]] = {}
        self.has_ended = asyncio.Event()
        self.answers: dict[int, Callable[[Received], bytes]] = {
            ECHO_REQUEST: lambda each: self.reply(each, each.body),
            FEATURES_REQUEST: lambda each: self.reply(
                each, struct.pack("!QIBB2xII", self.datapath_id, 0, 8, self.auxiliary_id, 0, 0)
            ),
            MULTIPART_REQUEST: lambda each: self.parts(each, [b"".join(self.ports)]),
            BARRIER_REQUEST: self.reply,
            ROLE_REQUEST: self._role,
            FLOW_MOD: self._add_flow,
            BUNDLE_CONTROL: self._control_bundle,
            BUNDLE_ADD: self._add_to_bundle,
        }

    async def connect(self, address: str, context: ssl.SSLContext | None = None) -> None:
        """Connect to a controller, and answer it in the background."""
        host, _, where = address.rpartition(":")
        self.take(*await asyncio.open_connection(host, int(where), ssl=context))

    async def listen(self, context: ssl.SSLContext | None = None) -> str:
        """Wait for a controller, and return the address."""
        self.server = await asyncio.start_server(self.take, "127.0.0.1", 0, ssl=context)
        return f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    def send(self, octets: bytes) -> None:
        self._writer.write(octets)

    def read_no_more(self) -> None:
        """Leave what comes from now on where it is."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    def close(self) -> None:
        self._task.cancel()
        self._writer.transport.abort()

    def reply(self, request: Received, body: bytes = b"") -> bytes:
        return message(self.version, request.kind + 1, request.xid, body)

    def parts(self, request: Received, bodies: list[bytes]) -> bytes:
        """A multipart answer."""
        return b"".join(
            self.reply(request, request.body[:2] + struct.pack("!H4x", int(number < len(bodies) - 1)) + body)
            for number, body in enumerate(bodies)
        )

    def error(self, request: Received, kind: int, code: int) -> bytes:
        return message(self.version, ERROR, request.xid, struct.pack("!HH", kind, code))

    @property
    def certificate(self) -> bytes | None:
        """What the controller has shown."""
        found: bytes | None = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return found

    def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer a connection in the background."""
        self._reader, self._writer = reader, writer
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            self.send(self.hello)
            while True:
                version, kind, length, xid = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
                body = await self._reader.readexactly(length - _HEADER.size)
                received = Received(version, kind, xid, body)
                self.received.append(received)
                if (answer := self.answers.get(kind)) is not None:
                    self.send(answer(received))
                    await self._writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._writer.transport.abort()
            self.has_ended.set()

    def _add_flow(self, each: Received) -> bytes:
        text = each.body.decode()
        if text in self.refusals:
            return self.error(each, *self.refusals[text])
        self.flows.append(text)
        return b""

    def _role(self, each: Received) -> bytes:
        role, generation_id = struct.unpack("!I4xQ", each.body)
        if self.generation_id is not None and generation_id < self.generation_id:
            return self.error(each, 11, 0)
        self.generation_id = generation_id
        return self.reply(each, struct.pack("!I4xQ", role, generation_id))

    def _control_bundle(self, each: Received) -> bytes:
        bundle_id, step, flags = struct.unpack("!IHH", each.body)
        answer = message(self.version, BUNDLE_CONTROL, each.xid, struct.pack("!IHH", bundle_id, step + 1, flags))
        if step == 0:
            self.bundles[bundle_id] = []
            return answer
        added = self.bundles.pop(bundle_id)
        if step != 4:
            return answer
        before = list(self.flows)
        errors = b"".join(self.answers[one.kind](one) for one in added if one.kind in self.answers)
        if not errors:
            return answer
        self.flows = before
        return errors + self.error(each, 17, 13)

    def _add_to_bundle(self, each: Received) -> bytes:
        bundle_id, _ = struct.unpack_from("!I2xH", each.body)
        version, kind, _, xid = _HEADER.unpack_from(each.body, 8)
        assert xid == each.xid  # the specification wants it
        self.bundles[bundle_id].append(Received(version, kind, xid, each.body[16:]))
        return b""


def obedient() -> FakeSwitch:
    """A switch that says that it holds nothing, and takes everything."""
    switch = FakeSwitch()

    def describe(each: Received) -> bytes:
        is_about_ports = int.from_bytes(each.body[:2], "big") == _PORT_DESCRIPTIONS
        return switch.parts(each, [b"".join(switch.ports) if is_about_ports else b""])

    switch.answers[MULTIPART_REQUEST] = describe
    switch.answers[FLOW_MOD] = lambda _: b""
    return switch
