"""The services under test, their methods, and how one is called with octets of any kind."""

import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import grpc
from finsy.proto import gnmi, p4r
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from controller.api.operations import operations_pb2
from hostlib.wire import trainyard_pb2
from tests.fuzz.messages import Words, drawn_octets
from tests.fuzz.templates import template

CONTROLLER_SERVICES = (
    trainyard_pb2.DESCRIPTOR.services_by_name["Controller"],
    operations_pb2.DESCRIPTOR.services_by_name["Operations"],
)
SWITCH_SERVICES = (
    p4r.WriteRequest.DESCRIPTOR.file.services_by_name["P4Runtime"],
    gnmi.GetRequest.DESCRIPTOR.file.services_by_name["gNMI"],
)

CALL_S = 60.0
"""Within which an answer must have come, or the call be refused."""
_STREAM_S = 0.3
"""For how long the answers of a stream are read that need not end."""
_MOST_ANSWERS = 2_000
_METADATA = (
    (("authorization", "Bearer"),),
    (("authorization", "Basic %00"),),
    (("authorization", "Bearer " + "a" * 5_000),),
    (("authorization", "Bearer a.b.c"),),
    (("a-bin", bytes(100)),),
    *(((), ()) * 4),
)


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its path, what its requests are, and which of its ends stream."""

    path: str
    request: type[Message]
    streams_requests: bool
    may_last: bool

    @classmethod
    def of(cls, services: Sequence[ServiceDescriptor]) -> list["Method"]:
        """Return all methods of services."""
        return [
            cls(
                f"/{service.full_name}/{method.name}",
                GetMessageClass(method.input_type),
                method.client_streaming,
                method.client_streaming or method.name == "Directives",
            )
            for service in services
            for method in service.methods
        ]


@dataclass(frozen=True, slots=True)
class Called:
    """A call and its end: the status, or None where the caller left a stream."""

    method: str
    beginnings: tuple[bytes, ...]
    """Of the octets of each request."""
    code: grpc.StatusCode | None
    details: str

    @property
    def is_refused(self) -> bool:
        """Whether the server has refused it."""
        return self.code not in (None, grpc.StatusCode.OK)

    def __str__(self) -> str:
        code = "left" if self.code is None else self.code.name
        sent = ", ".join(octets.hex() for octets in self.beginnings)
        return f"{self.method} {code} {self.details[:500]!r} sent {sent}"


def call(channel: grpc.Channel, method: Method, draws: Random, words: Words) -> Called:
    """Call a method with requests drawn from a seed."""
    number = draws.choice((0, 1, 1, 2, 5)) if method.streams_requests else 1
    requests = tuple(drawn_octets(method.request(), draws, words, template(method.path, draws)) for _ in range(number))
    metadata = draws.choice(_METADATA)
    leaves = draws.random() < 0.1
    if method.streams_requests:
        waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for request in requests:
            waiting.put(request)
        stream = channel.stream_stream(method.path)(_until_none(waiting), timeout=CALL_S, metadata=metadata)
        if draws.random() < 0.5:
            waiting.put(None)
    else:
        waiting = queue.SimpleQueue()
        stream = channel.unary_stream(method.path)(requests[0], timeout=CALL_S, metadata=metadata)
    try:
        beginnings = tuple(request[:300] for request in requests)
        return _ended(method, beginnings, stream, leaves_at_once=leaves)
    finally:
        waiting.put(None)


def _ended(method: Method, beginnings: tuple[bytes, ...], stream: grpc.Call, *, leaves_at_once: bool) -> Called:
    """Read the answers of a call, of a stream that may last only for a while."""
    left = leaves_at_once
    if method.may_last and not left:
        done: queue.SimpleQueue[None] = queue.SimpleQueue()
        stream.add_callback(lambda: done.put(None))
        try:
            done.get(timeout=_STREAM_S)
        except queue.Empty:
            left = True
    if left:
        stream.cancel()
        return Called(method.path, beginnings, None, "")
    try:
        for _, _ in zip(range(_MOST_ANSWERS), stream, strict=False):
            pass
        stream.cancel()
    except grpc.RpcError as error:
        return Called(method.path, beginnings, error.code(), error.details() or "")
    return Called(method.path, beginnings, grpc.StatusCode.OK, "")


def _until_none(waiting: "queue.SimpleQueue[bytes | None]") -> Iterator[bytes]:
    while (octets := waiting.get()) is not None:
        yield octets
