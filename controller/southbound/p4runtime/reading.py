"""Decode what switches hold, in slices beside the event loop.

What a switch answers is not trusted: it may be endless, or no entity of ours at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from finsy import P4ActionProfileGroup, P4ActionProfileMember, P4Schema, P4TableEntry
from finsy.p4entity import decode_entity, encode_entities
from finsy.proto import p4r

from controller.background import Worker
from controller.errors import DaemonError
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import SETTINGS, TABLES, Entity, holds_same, is_own, key_of
from controller.southbound.p4runtime.states import State
from controller.southbound.states import EntryKey, EntryKind
from topologies.printable import printable

MAX_ENTITIES = 200_000
MAX_BYTES = 64 << 20
"""A switch that answers with more is not read further. Our tables hold 20,000 flows and some thousand routes.

Where the tables of a program have room for more entries, as many as these may come.
"""

_SLICE = 200
"""Entities that are worked on at once, between which the thread does what others want of it."""
_ITEMS_PER_ENTITY = 5
"""A slice of fewer than a hundred entities is decoded at once."""

_ItemT = TypeVar("_ItemT")
_ResultT = TypeVar("_ResultT")


class UnreadableAnswerError(DaemonError):
    """A switch answers with more than a switch can hold, or with what is no entity of the pipeline."""


class Answer:
    """The messages of an answer as they arrive, up to a limit; ``add`` raises UnreadableAnswerError beyond."""

    def __init__(self, max_entities: int = MAX_ENTITIES) -> None:
        self.messages: list[p4r.ReadResponse] = []
        self._max_entities = max_entities
        self._entities = 0
        self._bytes = 0

    def add(self, message: p4r.ReadResponse) -> None:
        """Add the next message."""
        self._entities += len(message.entities)
        self._bytes += message.ByteSize()
        if self._entities > self._max_entities or self._bytes > MAX_BYTES:
            raise UnreadableAnswerError(
                f"it answers a read with more than {self._max_entities:,} entries or {MAX_BYTES >> 20} MiB"
            )
        self.messages.append(message)


class EntityReader:
    """Decodes entities for the switches of one P4Info, in the thread of ``worker``.

    Most entities are those that a switch is expected to hold. These are told by their bytes, which takes a fifth of the
    time of decoding them.
    """

    def __init__(self, schema: P4Schema, encoder: Encoder, worker: Worker) -> None:
        self._schema = schema
        self._encoder = encoder
        self._worker = worker
        tables = [table for table in TABLES if schema.tables.get(table) is not None]
        wanted: list[Entity] = [P4TableEntry(table) for table in tables]
        wanted += [P4TableEntry(table, is_default_action=True) for table in SETTINGS]
        if len(schema.action_profiles):
            wanted += [P4ActionProfileMember(), P4ActionProfileGroup()]
        self.wanted: Sequence[p4r.Entity] = tuple(encode_entities(wanted, schema))
        """Selects all entities that belong to the controller, and some of operators."""
        self._max_entities = max(MAX_ENTITIES, sum(schema.tables[table].size for table in tables))

    def answer(self) -> Answer:
        """Return an answer that has room for all that a switch can hold."""
        return Answer(self._max_entities)

    async def decode(self, answer: Answer, expected: State, known: "KnownEncodings") -> dict[EntryKey, Entity]:
        """Return the controller's own entities in an answer.

        Those that do the same as an entity of ``expected`` are that very object. Encodings that ``known`` has from the
        last time are not decoded again; it has those of this answer afterwards.

        Raises:
            UnreadableAnswerError: An entity cannot be decoded.
        """
        state: dict[EntryKey, Entity] = {}
        reading = _Reading(expected, known.same)
        for entities in _slices(list(expected.items())):
            await self._run(partial(self._encode, entities, reading), len(entities))
        for message in answer.messages:
            for part in _slices(message.entities):
                state |= await self._run(partial(self._read, part, reading), len(part))
        known.same = reading.seen
        return state

    async def _run(self, work: Callable[[], _ResultT], entities: int) -> _ResultT:
        return await self._worker.run(work, _ITEMS_PER_ENTITY * entities)

    def _encode(self, entities: Sequence[tuple[EntryKey, Entity]], reading: "_Reading") -> None:
        """Encode the rules of these that are not known from the last time."""
        for key, entity in entities:
            if key.kind is EntryKind.FLOW and id(entity) not in reading.known_entities:
                reading.pairs[self._encoder.octets(entity)] = key, entity

    def _read(self, messages: Sequence[p4r.Entity], reading: "_Reading") -> dict[EntryKey, Entity]:
        state: dict[EntryKey, Entity] = {}
        for message in messages:
            octets = message.SerializeToString(deterministic=True)
            pair = reading.pairs.get(octets)
            if pair is None or reading.expected.get(pair[0]) is not pair[1]:
                pair = self._decoded(message)
                if pair is None:
                    continue
                own = reading.expected.get(pair[0])
                if own is not None and holds_same(pair[1], own):
                    pair = pair[0], own
                    reading.seen[octets] = pair
            else:
                reading.seen[octets] = pair
            state[pair[0]] = pair[1]
        return state

    def _decoded(self, message: p4r.Entity) -> tuple[EntryKey, Entity] | None:
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
        self.same: dict[bytes, tuple[EntryKey, Entity]] = {}


class _Reading:
    """One reading of a switch: what it is expected to hold, and by their bytes the entities that need no decoding."""

    def __init__(self, expected: State, known: Mapping[bytes, tuple[EntryKey, Entity]]) -> None:
        self.expected = expected
        self.pairs = dict(known)
        self.known_entities = {id(entity) for _, entity in known.values()}
        self.seen: dict[bytes, tuple[EntryKey, Entity]] = {}


def _slices(items: Sequence[_ItemT]) -> Iterator[Sequence[_ItemT]]:
    for first in range(0, len(items), _SLICE):
        yield items[first : first + _SLICE]
