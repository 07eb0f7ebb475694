"""Decode what switches hold, in slices that leave the event loop free.

What a switch answers is not trusted: it may be endless, or no entity of ours at all.
"""

import asyncio
from collections.abc import Iterator, Sequence

from finsy import P4ActionProfileGroup, P4ActionProfileMember, P4Schema, P4TableEntry
from finsy.p4entity import decode_entity, encode_entities
from finsy.proto import p4r

from controller.errors import DaemonError
from controller.southbound.p4runtime.difference import State
from controller.southbound.p4runtime.entries import (
    SETTINGS,
    TABLES,
    Entity,
    EntityKey,
    holds_same,
    is_own,
    key_of,
)
from topologies.printable import printable

MAX_ENTITIES = 200_000
MAX_BYTES = 64 << 20
"""A switch that answers with more is not read further. Our tables hold 20,000 flows and some thousand routes."""

_SLICE = 100
"""Entities that are decoded at once, in about 5 ms."""

_WANTED = (
    *(P4TableEntry(table) for table in TABLES),
    *(P4TableEntry(table, is_default_action=True) for table in SETTINGS),
    P4ActionProfileMember(),
    P4ActionProfileGroup(),
)


class UnreadableAnswerError(DaemonError):
    """A switch answers with more than a switch can hold, or with what is no entity of the pipeline."""


class Answer:
    """The messages of an answer as they arrive, up to a limit; ``add`` raises UnreadableAnswerError beyond."""

    def __init__(self) -> None:
        self.messages: list[p4r.ReadResponse] = []
        self._entities = 0
        self._bytes = 0

    def add(self, message: p4r.ReadResponse) -> None:
        """Add the next message."""
        self._entities += len(message.entities)
        self._bytes += message.ByteSize()
        if self._entities > MAX_ENTITIES or self._bytes > MAX_BYTES:
            raise UnreadableAnswerError(
                f"it answers a read with more than {MAX_ENTITIES:,} entries or {MAX_BYTES >> 20} MiB"
            )
        self.messages.append(message)


class EntityReader:
    """Decodes entities for the switches of one P4Info, one slice at a time for all of them together."""

    def __init__(self, schema: P4Schema) -> None:
        self._schema = schema
        self._turn = asyncio.Lock()
        self.wanted: Sequence[p4r.Entity] = tuple(encode_entities(_WANTED, schema))
        """Selects all entities that belong to the controller, and some of operators."""

    async def decode(self, answer: Answer, expected: State, known: "KnownEncodings") -> dict[EntityKey, Entity]:
        """Return the controller's own entities in an answer.

        Those that do the same as an entity of ``expected`` are that very object. Encodings that ``known`` has from the
        last time are not decoded again; it has those of this answer afterwards.

        Raises:
            UnreadableAnswerError: An entity cannot be decoded.
        """
        state: dict[EntityKey, Entity] = {}
        seen: dict[bytes, tuple[EntityKey, Entity]] = {}
        for part in _slices(answer.messages):
            async with self._turn:
                for message in part:
                    octets = message.SerializeToString(deterministic=True)
                    pair = known.same.get(octets)
                    if pair is None or expected.get(pair[0]) is not pair[1]:
                        pair = self._decoded(message)
                        if pair is None:
                            continue
                        own = expected.get(pair[0])
                        if own is not None and holds_same(pair[1], own):
                            pair = pair[0], own
                            seen[octets] = pair
                    else:
                        seen[octets] = pair
                    state[pair[0]] = pair[1]
                await asyncio.sleep(0)
        known.same = seen
        return state

    def _decoded(self, message: p4r.Entity) -> tuple[EntityKey, Entity] | None:
        """Decode an entity; None where it is not the controller's."""
        try:
            entity = decode_entity(message, self._schema)
            match entity:
                case P4TableEntry(table_id=table, is_default_action=True) if table not in SETTINGS:
                    return None
                case P4TableEntry(table_id=table, is_default_action=False) if table not in TABLES:
                    return None
                case P4TableEntry() | P4ActionProfileMember() | P4ActionProfileGroup():
                    return (key_of(entity), entity) if is_own(entity) else None
        except Exception as error:
            # finsy raises whatever an unexpected value leads to.
            raise UnreadableAnswerError(
                f"it holds an entry that is none of the pipeline: {printable(str(error))}"
            ) from error
        return None


class KnownEncodings:
    """The encodings in which one switch has answered with entities that it was expected to hold."""

    def __init__(self) -> None:
        self.same: dict[bytes, tuple[EntityKey, Entity]] = {}


def _slices(messages: Sequence[p4r.ReadResponse]) -> Iterator[Sequence[p4r.Entity]]:
    for message in messages:
        for first in range(0, len(message.entities), _SLICE):
            yield message.entities[first : first + _SLICE]
