"""The messages by which a connection lives: hello, features, echo, barrier, roles.

The structures are those of the OpenFlow Switch Specification, version 1.5.1, section 7. All but SET_ASYNC are the same
in 1.3.5.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum

from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError
from controller.southbound.openflow.messages import HEADER, Version


class ControlType(IntEnum):
    """The types of messages beside those of ``messages.MessageType``."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    EXPERIMENTER = 4
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    SET_CONFIG = 9
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    ROLE_REQUEST = 24
    ROLE_REPLY = 25
    SET_ASYNC = 28
    ROLE_STATUS = 30
    BUNDLE_CONTROL = 33
    BUNDLE_ADD_MESSAGE = 34


class Role(IntEnum):
    """The role of a controller for a switch (OpenFlow 1.5.1, section 6.3.6)."""

    NO_CHANGE = 0
    EQUAL = 1
    MASTER = 2
    SLAVE = 3


_NAMES = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}

_ELEMENT = struct.Struct("!HH")
"""The type and length in bytes of an element of a hello."""
_VERSION_BITMAP = 1
_FEATURES = struct.Struct("!QIBB2xII")
"""Datapath id, buffers, tables, auxiliary id, capabilities, reserved."""
_CONFIG = struct.Struct("!HH")
"""Flags, the most bytes of a frame that no flow entry has a number for."""
_WHOLE_FRAMES = 0xFFFF
_ROLE = struct.Struct("!I4xQ")
"""Role, generation id. Version 1.5 has a short id in the padding."""
_PROPERTY = struct.Struct("!HHI")
_ROLE_STATUS_TO_SLAVES, _ROLE_STATUS_TO_MASTERS = 6, 7
_ANY_REASON = 0b11
"""Another controller has asked for it, or the switch was configured so."""
_HELLO_FAILED = struct.Struct("!HH")


def control_message(version: int, kind: ControlType, body: bytes = b"", xid: int = 0) -> bytes:
    """Return a message with this body."""
    return HEADER.pack(version, kind, HEADER.size + len(body), xid) + body


def hello() -> bytes:
    """Offer OpenFlow 1.3 and 1.5."""
    bitmap = sum(1 << version for version in Version)
    return control_message(max(Version), ControlType.HELLO, _PROPERTY.pack(_VERSION_BITMAP, 8, bitmap))


def hello_failed(version: int, problem: str) -> bytes:
    """Tell a peer that offers no version of ours why the connection ends."""
    body = _HELLO_FAILED.pack(0, 0) + problem.encode("ascii", "replace")
    return control_message(version, ControlType.ERROR, body)


def negotiated_version(message: bytes) -> Version:
    """Return the version to speak with a peer that says this hello.

    Raises:
        MisbehaviourError: It offers no version of ours, or its hello is malformed.
    """
    version = message[0]
    offered = _bitmap(message)
    if offered is None:  # the lower one of both sides' versions, if both have it
        offered = {min(version, max(Version))}
    if common := offered.intersection(Version):
        return Version(max(common))
    names = ", ".join(_NAMES.get(each, f"version {each}") for each in sorted(offered)[:8]) or "no version"
    raise MisbehaviourError(Misbehaviour.VERSION, f"speaks OpenFlow {names}; 1.3 or 1.5 is needed")


def _bitmap(message: bytes) -> set[int] | None:
    """The versions that a hello lists, None where it lists none."""
    at = HEADER.size
    while at + _ELEMENT.size <= len(message):
        kind, length = _ELEMENT.unpack_from(message, at)
        if length < _ELEMENT.size or at + length > len(message):
            raise MisbehaviourError(Misbehaviour.GARBAGE, f"a hello with an element of {length} bytes")
        if kind == _VERSION_BITMAP:
            words = message[at + _ELEMENT.size : at + length]
            bits = [int.from_bytes(words[first : first + 4], "big") for first in range(0, len(words) - 3, 4)]
            return {32 * number + bit for number, word in enumerate(bits) for bit in range(32) if word >> bit & 1}
        at += (length + 7) // 8 * 8
    return None


def datapath_of(message: bytes) -> tuple[int, int]:
    """Return the datapath id and the auxiliary id (0: the main connection) of a features reply.

    Raises:
        MisbehaviourError: It is too short.
    """
    if len(message) < HEADER.size + _FEATURES.size:
        raise MisbehaviourError(Misbehaviour.GARBAGE, f"a features reply of {len(message)} bytes")
    datapath_id, _, _, auxiliary_id, _, _ = _FEATURES.unpack_from(message, HEADER.size)
    return datapath_id, auxiliary_id


def tell_all(version: int) -> bytes:
    """Ask a switch to hand over whole frames; Open vSwitch tells one that has connected to it nothing without this."""
    return control_message(version, ControlType.SET_CONFIG, _CONFIG.pack(0, _WHOLE_FRAMES))


def echo_reply(request: bytes) -> bytes:
    """Answer an echo request with its own data."""
    return request[:1] + bytes((ControlType.ECHO_REPLY,)) + request[2:]


def role_request(version: int, role: Role, generation_id: int) -> bytes:
    """Ask for a role; ``generation_id`` has 64 bits."""
    return control_message(version, ControlType.ROLE_REQUEST, _ROLE.pack(role, generation_id))


def role_of(message: bytes) -> Role:
    """Return the role that a role status, or a role reply, tells.

    Raises:
        MisbehaviourError: It is too short, or there is no such role.
    """
    try:
        return Role(_ROLE.unpack_from(message, HEADER.size)[0])
    except (struct.error, ValueError) as error:
        raise MisbehaviourError(Misbehaviour.GARBAGE, f"a role message of no role: {message[8:24].hex(' ')}") from error


def tell_roles() -> bytes:
    """Ask a switch of version 1.5 to tell when our role changes; the rest of what it tells stays as it is."""
    kinds: Iterable[int] = _ROLE_STATUS_TO_SLAVES, _ROLE_STATUS_TO_MASTERS
    properties = b"".join(_PROPERTY.pack(kind, _PROPERTY.size, _ANY_REASON) for kind in kinds)
    return control_message(Version.OPENFLOW_1_5, ControlType.SET_ASYNC, properties)
