"""What both southbounds do alike on the way from one fabric to another, with switches in memory."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from controller.background import Worker
from controller.southbound.connection import nothing_waits
from controller.southbound.p4runtime.entries import Entity, key_of
from controller.southbound.p4runtime.fabric_states import FabricStates
from controller.southbound.p4runtime.states import MEANING
from controller.southbound.states import TRIED
from controller.southbound.written_switches import WrittenSwitches
from controller.switch_addresses import SwitchAddress
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.p4runtime.fake_access import FakeAccess
from tests.integration.reloading import part, whole
from topologies.addressing import MacAddress
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.routing import Routing
from topologies.specification import ClosSpecification

_CLOS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100)
_MACS = MacAddress(0x02_00_00_00_00_AA), MacAddress(0x02_00_00_00_00_BB)


class _InMemory(WrittenSwitches[Entity]):
    """Switches that are connected from the start; ``accesses`` has those that the fabric has, or has had."""

    def __init__(self, fabric: Fabric) -> None:
        super().__init__(_addresses(fabric), route(fabric), MEANING, Worker("memory"), None, nothing_waits)
        self.accesses: dict[str, FakeAccess] = {}
        self.removed: list[str] = []
        self._add(self._addresses)

    async def connect(self, *switches: str) -> None:
        for name in switches:
            await self._writers[name].connect(self.accesses[name])

    def _states_of(self, addresses: Sequence[SwitchAddress], routing: Routing) -> FabricStates:
        return FabricStates([address.name for address in addresses], routing, None)

    def _add(self, addresses: Sequence[SwitchAddress]) -> None:
        for name in (address.name for address in addresses):
            self._writers[name], self.accesses[name] = self._writer(name), FakeAccess()

    def _remove(self, name: str) -> None:
        del self._writers[name]
        self.removed.append(name)


def _addresses(fabric: Fabric) -> list[SwitchAddress]:
    return [SwitchAddress(name=name, address="127.0.0.1:1", device_id=1) for name in fabric.switches]


def _document() -> dict[str, Any]:
    """A fabric whose MACs have to be learned."""
    document = whole(_CLOS)
    for nic in (nic for host in document["hosts"] for nic in host["nics"]):
        nic["mac"] = None
    return document


def _built(document: dict[str, Any]) -> Fabric:
    return FabricSpecification.model_validate(document).build()


def _exchanged() -> Fabric:
    """The same fabric with h0 and h1 each at the other's port."""
    document, other = _document(), {"h0:eth0": "h1:eth0", "h1:eth0": "h0:eth0"}
    for cable in document["cables"]:
        cable["ends"] = [other.get(end, end) for end in cable["ends"]]
    return _built(document)


def test_neighbours_are_those_of_the_fabric_before_until_writers_have_its_ports_no_longer() -> None:
    """An entry tells a port, and what is plugged in there is another NIC on the next fabric."""

    async def play() -> None:
        before, after = _built(_document()), _exchanged()
        southbound = _InMemory(before)
        await southbound.connect(*before.switches)
        known = {before.nics[host][0].address: mac for host, mac in zip(("h0", "h1"), _MACS, strict=True)}
        await southbound.set_neighbours(known)
        assert southbound.neighbours() == known
        await southbound.use_fabric(_addresses(after), route(after))
        assert southbound.neighbours() == known
        await southbound.rebase(route(after))
        assert southbound.neighbours() == known

    asyncio.run(play())


def test_neighbours_of_a_switch_that_goes_are_known_until_the_fabric_is_in_force() -> None:
    async def play() -> None:
        document = _document()
        before, after = _built(document), _built(part(document, switches=["t0"], hosts=["h0", "h1"]))
        southbound = _InMemory(before)
        await southbound.connect(*before.switches)
        known = {before.nics[host][0].address: mac for host, mac in zip(("h0", "h2"), _MACS, strict=True)}
        await southbound.set_neighbours(known)
        await southbound.use_fabric(_addresses(after), route(after))
        assert southbound.neighbours() == known
        await southbound.rebase(route(after))
        assert southbound.neighbours() == {before.nics["h2"][0].address: _MACS[1]}

    asyncio.run(play())


def test_another_fabric_is_tried_on_known_switches_alone_and_taken_back() -> None:
    async def play() -> None:
        document = whole(_CLOS)
        before, after = _built(part(document, switches=["a1"])), _built(document)
        southbound = _InMemory(before)
        await southbound.connect(*before.switches)
        held = {name: dict(access.held) for name, access in southbound.accesses.items()}
        await southbound.try_fabric(_addresses(after), route(after))
        tried = {
            name: [entity for key, entity in access.held.items() if key not in held[name]]
            for name, access in southbound.accesses.items()
        }
        assert tried["t0"]
        assert tried["t1"]
        assert {key_of(entity).kind for entities in tried.values() for entity in entities} <= set(TRIED)
        assert tried.keys() == {*before.switches}
        await southbound.keep_fabric()
        assert {name: access.held for name, access in southbound.accesses.items()} == held

    asyncio.run(play())


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_switch_that_goes_is_removed_and_written_to_no_longer(*, is_connected: bool) -> None:
    async def play() -> None:
        document = whole(_CLOS)
        before, after = _built(document), _built(part(document, switches=["a1"]))
        southbound = _InMemory(before)
        if is_connected:
            await southbound.connect(*before.switches)
        gone = southbound.accesses["a1"]
        held = dict(gone.held)
        await southbound.use_fabric(_addresses(after), route(after))
        await southbound.rebase(route(after))
        await southbound.write({})
        await southbound.read_back()
        assert southbound.removed == ["a1"]
        assert [status.name for status in southbound.statuses()] == list(after.switches)
        assert gone.held == held

    asyncio.run(play())


def test_a_switch_that_comes_is_given_what_its_fabric_asks_for() -> None:
    async def play() -> None:
        document = whole(_CLOS)
        before, after = _built(part(document, switches=["a1"])), _built(document)
        southbound, from_start = _InMemory(before), _InMemory(after)
        await southbound.connect(*before.switches)
        await southbound.use_fabric(_addresses(after), route(after))
        await southbound.rebase(route(after))
        await southbound.connect("a1")
        await from_start.connect(*after.switches)
        assert southbound.removed == []
        for name in after.switches:
            assert southbound.accesses[name].held == from_start.accesses[name].held

    asyncio.run(play())
