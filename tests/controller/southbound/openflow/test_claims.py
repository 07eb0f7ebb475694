"""By which number a controller claims its switches, and how it gets back those that it has lost."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller.config import ControllerConfig
from controller.southbound.fencing import first_election_id
from controller.southbound.openflow import claims
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.visiting_fabric import visiting_southbound
from controller.switch_addresses import SwitchAddress
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, obedient
from tests.controller.southbound.openflow.listening import in_time
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import LISTEN, Programmed, add_bridges, addresses_of
from tests.openvswitch import running_openvswitch
from tests.patience import until
from topologies.clos import ClosSpecification
from topologies.openvswitch.daemons import OpenVSwitch

_CLOS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100)
_FABRIC = _CLOS.build()
_ELECTION_ID = (1 << 64) + 5
_EQUAL, _MASTER, _SLAVE = 1, 2, 3


class _Term:
    """The grant of term 3."""

    term = 3

    async def granted(self) -> None:
        pass

    def doubt(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_TICK_S", 0.01)
    monkeypatch.setattr(claims, "_AGAIN_S", 0.05)


@asynccontextmanager
async def _claimed(switch: FakeSwitch, grant: _Term | None = None) -> AsyncIterator[OpenFlowSouthbound]:
    """A southbound that has taken over a switch."""
    southbound = OpenFlowSouthbound(addresses_of(["t0"]), route(_FABRIC), LISTEN, grant=grant, election_id=_ELECTION_ID)
    async with southbound.hearing_ports(None), southbound:
        await switch.connect(southbound._connections.listens_at)
        await southbound.caught_up()
        yield southbound
    switch.close()


def _tell_role(switch: FakeSwitch, role: int) -> None:
    body = struct.pack("!IB3xQ", role, 0, switch.generation_id or 0)
    switch.send(fake_switch.message(switch.version, fake_switch.ROLE_STATUS, 0, body))


def _condition(southbound: OpenFlowSouthbound) -> SwitchCondition:
    (status,) = southbound.statuses()
    return status.condition


def _num_claims(switch: FakeSwitch) -> int:
    return sum(each.kind == fake_switch.ROLE_REQUEST for each in switch.received)


def test_a_term_is_claimed_above_the_election_id() -> None:
    """Operators raise it where switches remember later terms than the database has."""

    async def run() -> None:
        switch = obedient()
        async with _claimed(switch, _Term()):
            assert switch.generation_id == first_election_id(_ELECTION_ID, 3) % (1 << 64)

    in_time(run)


def test_a_controller_without_terms_claims_by_its_election_id() -> None:
    async def run() -> None:
        switch = obedient()
        async with _claimed(switch):
            assert switch.generation_id == 5

    in_time(run)


def test_a_controller_without_terms_gives_way_to_a_later_claim_and_comes_back() -> None:
    async def run() -> None:
        switch = obedient()
        async with _claimed(switch) as southbound:
            switch.generation_id = 6  # another controller's
            num_claims = _num_claims(switch)
            _tell_role(switch, _SLAVE)
            await until(lambda: _condition(southbound) is SwitchCondition.LOST)
            with pytest.raises(SouthboundError, match="lost to another controller"):
                await southbound.caught_up()
            await until(lambda: _num_claims(switch) >= num_claims + 2)
            assert _condition(southbound) is SwitchCondition.LOST
            switch.generation_id = 5
            await until(lambda: _condition(southbound) is SwitchCondition.CAUGHT_UP)

    in_time(run)


@pytest.mark.parametrize("role", [_MASTER, _EQUAL])
def test_a_leader_comes_back_when_the_switch_gives_it_its_role_again(role: int) -> None:
    async def run() -> None:
        switch = obedient()
        async with _claimed(switch, _Term()) as southbound:
            _tell_role(switch, _SLAVE)
            await until(lambda: _condition(southbound) is SwitchCondition.LOST)
            await asyncio.sleep(0.2)  # it does not come back by itself
            assert _condition(southbound) is SwitchCondition.LOST
            _tell_role(switch, role)
            await until(lambda: _condition(southbound) is SwitchCondition.CAUGHT_UP)
            assert _num_claims(switch) == 2

    in_time(run)


def test_a_switch_without_roles_is_programmed_by_a_controller_without_terms() -> None:
    async def run() -> None:
        switch = obedient()
        switch.answers[fake_switch.ROLE_REQUEST] = lambda each: switch.error(each, 11, 1)
        async with _claimed(switch) as southbound:
            assert _condition(southbound) is SwitchCondition.CAUGHT_UP

    in_time(run)


@pytest.mark.parametrize(("term", "generation_id"), [(3, _ELECTION_ID % (1 << 64)), (None, None)])
def test_a_visit_claims_switches_where_controllers_have_terms(term: int | None, generation_id: int | None) -> None:
    async def run() -> None:
        switches: list[FakeSwitch] = []
        addresses: list[SwitchAddress] = []
        for number, name in enumerate(_FABRIC.switches, start=1):
            switch = obedient()
            switch.datapath_id = number
            switches.append(switch)
            addresses += addresses_of([name], connect=await switch.listen(), datapath_id=hex(number))
        config = ControllerConfig.model_validate(
            {"listen": "127.0.0.1:0", "topology": _CLOS, "switches": tuple(addresses), "policy": "trainyard"}
        )
        southbound = visiting_southbound(config, route(_FABRIC), _ELECTION_ID, term, None)
        async with southbound.connected(None):
            await southbound.bid()
            assert not any(visit.problem for visit in southbound.visits.values())
        assert {switch.generation_id for switch in switches} == {generation_id}

    in_time(run)


def test_a_switch_comes_back_when_the_other_controller_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two controllers without terms the last one to claim has a switch, also of Open vSwitch."""
    monkeypatch.setattr(claims, "_AGAIN_S", 1.0)
    routing, addresses = route(_FABRIC), addresses_of(_FABRIC.switches)

    def conditions(programmed: Programmed) -> set[SwitchCondition]:
        return {status.condition for status in programmed.southbound.statuses()}

    async def run(openvswitch: OpenVSwitch) -> None:
        first, second = Programmed(routing, addresses), Programmed(routing, addresses)
        async with first.running(openvswitch, _FABRIC.switches):
            await until(lambda: conditions(first) == {SwitchCondition.CAUGHT_UP})
            async with second.southbound.hearing_ports(second.ports), second.southbound:
                for name in _FABRIC.switches:
                    openvswitch.vsctl("set-controller", name, f"tcp:{first.place}", f"tcp:{second.place}")
                await until(lambda: SwitchCondition.LOST in conditions(first))
            await until(lambda: conditions(first) == {SwitchCondition.CAUGHT_UP})

    with running_openvswitch() as openvswitch:
        add_bridges(openvswitch, _FABRIC)
        asyncio.run(run(openvswitch))


def test_a_refusal_names_the_entry() -> None:
    async def run() -> None:
        switch = obedient()
        switch.answers[fake_switch.FLOW_MOD] = lambda each: switch.error(each, 5, 1)
        southbound = OpenFlowSouthbound(addresses_of(["t0"]), route(_FABRIC), LISTEN)
        async with southbound.hearing_ports(None), southbound:
            await switch.connect(southbound._connections.listens_at)
            await until(lambda: _condition(southbound) is SwitchCondition.REFUSES)
            (status,) = southbound.statuses()
            words = "routing all else: drop: flow mod failed: table full (OFPFMFC_TABLE_FULL)"
            assert status.problem == f"{words} (and 4 more entries)"
        switch.close()

    in_time(run)
