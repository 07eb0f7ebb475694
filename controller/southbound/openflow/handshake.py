"""The handshake with a switch: the version, the datapath id, the ports.

A peer may be anything here, also a connection that has waited so long that its switch has gone, which simply ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.errors import DaemonError
from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError
from controller.southbound.openflow.connection import Connection
from controller.southbound.openflow.control_messages import (
    ControlType,
    control_message,
    datapath_of,
    echo_reply,
    hello,
    hello_failed,
    negotiated_version,
    tell_all,
)
from controller.southbound.openflow.error_words import refusal_of
from controller.southbound.openflow.messages import HEADER, MessageType, Version
from controller.southbound.openflow.port_messages import (
    PortDescription,
    decode_port_descriptions,
    port_descriptions_request,
)

MOST_PORTS = 4_096
_MOST_MESSAGES = 1_000
"""So many may come for an answer, or before it."""
_MOST_BYTES = 1 << 20
"""So many may the parts of an answer have together: so many ports as a switch can have are a third of it."""
_MORE = 1
"""The flag of a part of an answer that another one follows."""
_FLAGS_AT = 10
"""Where a multipart message has its flags."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a switch says of itself."""

    version: Version
    datapath_id: int
    ports: dict[int, PortDescription]


async def shake_hands(connection: Connection) -> Greeting:
    """Greet a peer, and learn what it is. To be bounded in time by the caller.

    Raises:
        AwayError: The connection ends.
        MisbehaviourError: The peer does not do as a switch of ours does.
    """
    connection.send(hello())
    version = await _agree(connection)
    connection.expect(version)
    (features,) = await _ask(
        connection, control_message(version, ControlType.FEATURES_REQUEST), ControlType.FEATURES_REPLY
    )
    datapath_id, auxiliary_id = datapath_of(features)
    if auxiliary_id:
        raise MisbehaviourError(
            Misbehaviour.AUXILIARY, f"{datapath_id:#x}: an auxiliary connection (number {auxiliary_id}) is not served"
        )
    connection.send(tell_all(version))
    replies = await _ask(connection, port_descriptions_request(version), MessageType.MULTIPART_REPLY)
    try:
        ports = decode_port_descriptions(replies, version)
    except DaemonError as error:
        raise MisbehaviourError(Misbehaviour.PORTS, f"{datapath_id:#x}: its port descriptions: {error}") from error
    return Greeting(version, datapath_id, _by_number(datapath_id, ports))


def check_port(datapath_id: int, port: PortDescription, num_ports: int) -> None:
    """Raise MisbehaviourError where a switch with so many ports cannot have this one."""
    problem = ""
    if port.number == 0:
        problem = "has a port 0, which cannot be"
    elif num_ports > MOST_PORTS:
        problem = f"has more than {MOST_PORTS:,} ports"
    if problem:
        raise MisbehaviourError(Misbehaviour.PORTS, f"{datapath_id:#x}: {problem}")


def _by_number(datapath_id: int, ports: Sequence[PortDescription]) -> dict[int, PortDescription]:
    """Return the ports that a switch has described, each of which can be."""
    known: dict[int, PortDescription] = {}
    for port in ports:
        check_port(datapath_id, port, len(ports))
        if port.number in known:
            raise MisbehaviourError(Misbehaviour.PORTS, f"{datapath_id:#x}: describes port {port.number} twice")
        known[port.number] = port
    return known


def is_last(reply: bytes) -> bool:
    """Whether no other part of an answer follows this message."""
    if reply[1] != MessageType.MULTIPART_REPLY:
        return True
    return not int.from_bytes(reply[_FLAGS_AT : _FLAGS_AT + 2], "big") & _MORE


async def _agree(connection: Connection) -> Version:
    """Return the version to speak, from the peer's hello."""
    (message,) = await connection.receive(most=1)
    if message[1] == ControlType.ERROR:
        raise MisbehaviourError(Misbehaviour.VERSION, f"refuses our hello: {refusal_of(message).words}")
    try:
        return negotiated_version(message)
    except MisbehaviourError as error:
        connection.send(hello_failed(message[0], str(error)))
        raise


async def _ask(connection: Connection, request: bytes, answer: int) -> list[bytes]:
    """Send a request and return all parts of its answer; messages in between are let go, but echo is answered."""
    kind = request[1]
    xid = kind  # each kind is asked once
    connection.send(request[:4] + xid.to_bytes(4, "big") + request[HEADER.size :])
    parts: list[bytes] = []
    num_bytes = 0
    for _ in range(_MOST_MESSAGES):
        (message,) = await connection.receive(most=1)
        _, found, _, found_xid = HEADER.unpack_from(message)
        if found == ControlType.ECHO_REQUEST:
            connection.send(echo_reply(message))
        elif found_xid == xid and found == ControlType.ERROR:
            raise MisbehaviourError(Misbehaviour.GARBAGE, f"refuses the handshake: {refusal_of(message).words}")
        elif found_xid == xid and found == answer:
            parts.append(message)
            num_bytes += len(message)
            if num_bytes > _MOST_BYTES:
                raise MisbehaviourError(Misbehaviour.ENDLESS, f"an answer has more than {_MOST_BYTES:,} bytes")
            if is_last(message):
                return parts
    raise MisbehaviourError(Misbehaviour.ENDLESS, f"sends {_MOST_MESSAGES:,} messages in the place of an answer")
