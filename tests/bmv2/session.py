"""What a switch is given (entries, packets) and what it makes of it (packets, counters), whichever switch it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from finsy.proto import p4i, p4r

from tests.bmv2.masking import Mask, mask_of, masked

CPU_PORT = 510
"""Where the controller's packets come in and leave, with their header in front."""

_ALWAYS_THERE = ("meter_entry", "direct_meter_entry")

Counts = Mapping[str, Mapping[int, tuple[int, int]]]
"""Packets and bytes of the cells that are not 0, by counter; a direct counter's cell is its entry's place."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet at a port."""

    port: int
    octets: bytes


@dataclass(frozen=True, slots=True)
class Session:
    """What a switch with an empty pipeline is given: entries, then packets one by one."""

    entries: tuple[p4r.Entity, ...]
    packets: tuple[Packet, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What left for each packet, and what was counted."""

    sent: tuple[tuple[Packet, ...], ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class Recording:
    """A session, a switch's answer to it and, for each packet, what of the answer may differ on another switch."""

    session: Session
    masks: tuple[Mask, ...]
    answer: Answer


class Switch(Protocol):
    """A switch that runs a program."""

    @property
    def p4info(self) -> p4i.P4Info:
        """That of the program."""

    def clear(self) -> None:
        """Set the pipeline anew, which empties it."""

    def write(self, updates: list[p4r.Update]) -> None:
        """Carry out updates; all must succeed."""

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        """What the requests select."""

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive, and return what leaves once it is through."""


def record(switch: Switch, session: Session) -> Recording:
    """Ask a switch, and mask its answer."""
    answer = _ask(switch, session)
    masks = tuple(
        mask_of(packet.octets, sent[0].octets) if sent else ()
        for packet, sent in zip(session.packets, answer.sent, strict=True)
    )
    return Recording(session, masks, _masked(answer, masks))


def replay(switch: Switch, recording: Recording) -> Answer:
    """Ask another switch the same, and mask its answer in the same places."""
    return _masked(_ask(switch, recording.session), recording.masks)


def _ask(switch: Switch, session: Session) -> Answer:
    switch.clear()
    switch.write([p4r.Update(type=_update_type(entity), entity=entity) for entity in session.entries])
    sent = tuple(tuple(switch.send(packet)) for packet in session.packets)
    return Answer(sent, _counts(switch, session.entries))


def _update_type(entity: p4r.Entity) -> p4r.Update.Type.ValueType:
    is_there = entity.table_entry.is_default_action or entity.WhichOneof("entity") in _ALWAYS_THERE
    return p4r.Update.MODIFY if is_there else p4r.Update.INSERT


def _masked(answer: Answer, masks: tuple[Mask, ...]) -> Answer:
    sent = tuple(
        tuple(Packet(packet.port, masked(packet.octets, mask)) for packet in packets)
        for packets, mask in zip(answer.sent, masks, strict=True)
    )
    return Answer(sent, answer.counts)


def _counts(switch: Switch, entries: tuple[p4r.Entity, ...]) -> Counts:
    places = {_identity(entity.table_entry): place for place, entity in enumerate(entries)}
    indirects = {counter.preamble.id: counter.preamble.alias for counter in switch.p4info.counters}
    directs = {counter.direct_table_id: counter.preamble.alias for counter in switch.p4info.direct_counters}
    requests = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter)) for counter in indirects]
    for table in directs:
        selector = p4r.TableEntry(table_id=table)
        requests.append(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=selector)))
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for entity in switch.read(*requests):
        if entity.HasField("counter_entry"):
            indirect = entity.counter_entry
            name, cell, data = indirects[indirect.counter_id], indirect.index.index, indirect.data
        else:
            direct = entity.direct_counter_entry
            name, data = directs[direct.table_entry.table_id], direct.data
            cell = places[_identity(direct.table_entry)]
        if data.packet_count or data.byte_count:
            found.setdefault(name, {})[cell] = data.packet_count, data.byte_count
    return found


def _identity(entry: p4r.TableEntry) -> tuple[int, int, tuple[bytes, ...]]:
    match = sorted(entry.match, key=lambda field: field.field_id)
    return entry.table_id, entry.priority, tuple(field.SerializeToString(deterministic=True) for field in match)
