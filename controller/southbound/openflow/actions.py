"""What entries do, on the wire: actions and instructions, sections 7.2.4 and 7.2.5 of OpenFlow 1.3.5.

Both versions have the same bytes for those that we use. ``Forward`` is four actions in this order: decrement the TTL,
set the source MAC, set the destination MAC, output.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import islice

from controller.southbound.openflow.entries import Action, Forward, SetDscp, SetQueue, Table, ToController, ToGroup
from controller.southbound.openflow.fields import ETHERNET_DESTINATION, ETHERNET_SOURCE, IP_DSCP, encode_dscp
from controller.southbound.openflow.messages import (
    CONTROLLER_PORT,
    LAST_PORT,
    LONGEST_MESSAGE_BYTES,
    typed_parts,
    unpack,
    unpack_start,
)
from topologies.addressing import MacAddress


class _ActionType(IntEnum):
    OUTPUT = 0
    SET_QUEUE = 21
    GROUP = 22
    DECREMENT_TTL = 24
    SET_FIELD = 25


class _InstructionType(IntEnum):
    GOTO_TABLE = 1
    APPLY_ACTIONS = 4


_TYPE_AND_LENGTH = struct.Struct("!HH")
_OUTPUT = struct.Struct("!HHIH6x")
_NUMBER = struct.Struct("!HHI")
_SET_FIELD = struct.Struct("!HH12s")
_FORWARD = struct.Struct("!8s8s6s2x8s6s2x16s")
_NUM_PARTS_OF_FORWARD = 4
_GOTO = struct.Struct("!HHB3x")
_APPLY = struct.Struct("!HH4x")

_SET_FIELD_START = _TYPE_AND_LENGTH.pack(_ActionType.SET_FIELD, _SET_FIELD.size)
_FORWARD_STARTS = (
    _NUMBER.pack(_ActionType.DECREMENT_TTL, _NUMBER.size, 0),
    _SET_FIELD_START + ETHERNET_SOURCE,
    _SET_FIELD_START + ETHERNET_DESTINATION,
)
"""Decrement the TTL; set the source MAC and the destination MAC that follow."""

_TABLES = frozenset(Table)
_MOST_KNOWN = 1 << 14
"""So many different lists of actions are remembered: the flow entries of a switch share a few."""
_LONGEST_KNOWN_BYTES = 128
"""Ours are shorter. A switch could send thousands of long ones."""

_Instructions = tuple[tuple[Action, ...], Table | None]
"""What an entry does to packets, and the table where they go on."""


@lru_cache(_MOST_KNOWN)
def encode_instructions(actions: tuple[Action, ...], goto: Table | None) -> bytes:
    """Return the instructions of a flow entry.

    Raises:
        ValueError: OpenFlow cannot say them, or they lead to a group twice: Open vSwitch 3.1 ends by a failed assertion
            when such a group is deleted.
    """
    group_ids = [action.group_id for action in actions if isinstance(action, ToGroup)]
    if len(set(group_ids)) < len(group_ids):
        raise ValueError(f"an entry leads to a group once: {actions}")
    instructions = b""
    if actions:
        applied = encode_actions(actions)
        if len(applied) > LONGEST_MESSAGE_BYTES - _APPLY.size:
            raise ValueError(f"an entry with {len(actions):,} actions is longer than OpenFlow can say")
        instructions = _APPLY.pack(_InstructionType.APPLY_ACTIONS, _APPLY.size + len(applied)) + applied
    if goto is not None:
        instructions += _GOTO.pack(_InstructionType.GOTO_TABLE, _GOTO.size, goto)
    return instructions


def encode_actions(actions: Sequence[Action]) -> bytes:
    """Return actions. Raises ValueError where OpenFlow cannot say one of them."""
    try:
        return b"".join(map(_encode_action, actions))
    except struct.error:
        raise ValueError(f"a number does not fit into its action: {actions}") from None


def decode_instructions(octets: bytes) -> _Instructions | None:
    """Return the actions and the table where packets go on; None where our words do not tell all of them.

    Raises:
        MalformedError: They are truncated or corrupt.
    """
    return _decode_known(octets) if len(octets) <= _LONGEST_KNOWN_BYTES else _decode_instructions(octets)


def _decode_instructions(octets: bytes) -> _Instructions | None:
    applied, goto = b"", None
    found = set[int]()
    for kind, part in typed_parts(octets, "an instruction"):
        if kind == _InstructionType.APPLY_ACTIONS:
            unpack_start(_APPLY, part, "an instruction")
            applied = part[_APPLY.size :]
        elif kind == _InstructionType.GOTO_TABLE:
            goto = unpack(_GOTO, part, "an instruction")[2]
        else:
            return None
        if kind in found:
            return None
        found.add(kind)
    actions = decode_actions(applied)
    if actions is None or (goto is not None and goto not in _TABLES):
        return None
    return actions, None if goto is None else Table(goto)


_decode_known = lru_cache(_MOST_KNOWN)(_decode_instructions)


def decode_actions(octets: bytes) -> tuple[Action, ...] | None:
    """Return actions; None where our words do not tell all of them.

    Raises:
        MalformedError: They are truncated or corrupt.
    """
    found: list[Action] = []
    parts = typed_parts(octets, "an action")
    for kind, part in parts:
        action: Action | None
        if kind == _ActionType.DECREMENT_TTL:
            others = islice(parts, _NUM_PARTS_OF_FORWARD - 1)
            action = _decode_forward(part + b"".join(other for _, other in others))
        else:
            action = _decode_action(kind, part)
        if action is None:
            return None
        found.append(action)
    return tuple(found)


def encode_output(port: int) -> bytes:
    """Return the action that sends a packet out of a port. Raises ValueError where its number is reserved."""
    if not 0 < port <= LAST_PORT:
        raise ValueError(f"port {port} is reserved")
    return _OUTPUT.pack(_ActionType.OUTPUT, _OUTPUT.size, port, 0)


def _encode_action(action: Action) -> bytes:
    match action:
        case Forward(port, source_mac, destination_mac):
            decrement, source, destination = _FORWARD_STARTS
            return _FORWARD.pack(
                decrement, source, source_mac.packed, destination, destination_mac.packed, encode_output(port)
            )
        case ToGroup(group_id):
            return _NUMBER.pack(_ActionType.GROUP, _NUMBER.size, group_id)
        case SetDscp(dscp):
            return _SET_FIELD.pack(_ActionType.SET_FIELD, _SET_FIELD.size, encode_dscp(dscp))
        case SetQueue(queue):
            return _NUMBER.pack(_ActionType.SET_QUEUE, _NUMBER.size, queue)
        case ToController(most_bytes):
            return _OUTPUT.pack(_ActionType.OUTPUT, _OUTPUT.size, CONTROLLER_PORT, most_bytes)


def _decode_action(kind: int, part: bytes) -> Action | None:
    """Return an action that is no part of a Forward."""
    if kind == _ActionType.OUTPUT:
        _, _, port, most_bytes = unpack(_OUTPUT, part, "an action")
        return ToController(most_bytes) if port == CONTROLLER_PORT else None
    if kind in (_ActionType.GROUP, _ActionType.SET_QUEUE):
        number = unpack(_NUMBER, part, "an action")[2]
        return ToGroup(number) if kind == _ActionType.GROUP else SetQueue(number)
    if kind == _ActionType.SET_FIELD and len(part) == _SET_FIELD.size and part[4:8] == IP_DSCP:
        return SetDscp(part[8])
    return None


def _decode_forward(part: bytes) -> Forward | None:
    """Return the Forward of its four actions."""
    if len(part) != _FORWARD.size:
        return None
    decrement, source, source_mac, destination, destination_mac, output = _FORWARD.unpack(part)
    kind, _, port, _ = _OUTPUT.unpack(output)
    if (decrement, source, destination) != _FORWARD_STARTS or kind != _ActionType.OUTPUT or not 0 < port <= LAST_PORT:
        return None
    return Forward(port, _mac(source_mac), _mac(destination_mac))


def _mac(octets: bytes) -> MacAddress:
    return MacAddress.from_bytes(octets, "big")
