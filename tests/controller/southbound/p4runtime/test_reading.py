"""What a switch holds is told by its bytes where it is expected, else decoded, and always beside the event loop."""

import asyncio
import threading
from collections.abc import Iterable, Sequence

import pytest
from finsy import P4Schema
from finsy.proto import p4r

from controller.background import Worker
from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime import reading
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import Entity, base_entries, flow_entry
from controller.southbound.p4runtime.reading import Answer, EntityReader, KnownEncodings
from controller.southbound.p4runtime.states import State, state_of
from p4src import P4INFO
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric
from topologies.routing import Routing

SCHEMA = P4Schema(P4INFO)


def rules(fabric: Fabric, number: int, level: int = 1) -> list[Entity]:
    source, destination = fabric.nics["h0"][0].address, fabric.nics["h2"][0].address
    five_tuples = (
        FiveTuple(source, destination, UDP_PROTOCOL, 50_000 + port, FLOW_DESTINATION_PORT) for port in range(number)
    )
    return [flow_entry(FlowRule("t0", five_tuple, None, level), fabric) for five_tuple in five_tuples]


def answer(entities: Iterable[Entity]) -> Answer:
    found = Answer()
    found.add(p4r.ReadResponse(entities=[entity.encode(SCHEMA) for entity in entities]))
    return found


class Decoded:
    """Counts the entities that are decoded, and notes the threads that do so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        self.threads: set[int] = set()
        decode = reading.decode_entity

        def counted(*arguments: object) -> object:
            self.number += 1
            self.threads.add(threading.get_ident())
            return decode(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(reading, "decode_entity", counted)


def read(expected: State, entities: Sequence[Entity], known: KnownEncodings | None = None) -> State:
    async def scenario() -> State:
        worker = Worker("reading")
        reader = EntityReader(SCHEMA, Encoder(SCHEMA), worker)
        try:
            return await reader.decode(answer(entities), expected, known or KnownEncodings())
        finally:
            worker.close()

    return asyncio.run(scenario())


def test_expected_rules_are_not_decoded(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = Decoded(monkeypatch)
    held = rules(fabric, 1_000)
    found = read(state_of(held), rules(fabric, 1_000))
    assert decoded.number == 0
    assert all(found[key] is entity for key, entity in state_of(held).items())


def test_others_are_decoded_in_another_thread(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = Decoded(monkeypatch)
    expected, changed = state_of(rules(fabric, 700)), rules(fabric, 300, level=5)
    found = read(expected, [*changed, *rules(fabric, 1_000)[300:]])
    assert decoded.number == 600  # 300 that do something else, and 300 that are foreign
    assert threading.get_ident() not in decoded.threads
    assert found == state_of([*changed, *rules(fabric, 1_000)[300:]])


def test_base_entries_are_decoded_once(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = Decoded(monkeypatch)
    base, known = base_entries("t0", routing), KnownEncodings()
    assert read(state_of(base), base, known) == state_of(base)
    first, decoded.number = decoded.number, 0
    assert first == len(base)
    assert read(state_of(base), base, known) == state_of(base)
    assert decoded.number == 0
