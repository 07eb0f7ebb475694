"""Switches that are slow, refuse for a while, or are asked again after a write that nobody waits for any longer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from controller.rules.flow_rules import FlowRule, RulesBySwitch
from controller.southbound import trying_again
from controller.southbound.openflow import switches as openflow_switches
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.southbound import SouthboundError, SwitchCondition
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, Received, flow_mod, obedient
from tests.controller.southbound.openflow.listening import connected, in_time
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import LISTEN, addresses_of
from tests.patience import until
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.clos import ClosSpecification

_FABRIC = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100).build()
_TABLE_FULL = 5, 1


def _rules(source_port: int) -> RulesBySwitch:
    """A rule of t0, and one of t1."""
    h0, h3 = (_FABRIC.nics[host][0].address for host in ("h0", "h3"))
    ways = {"t0": (h0, h3), "t1": (h3, h0)}
    return {
        name: (FlowRule(name, FiveTuple(*way, UDP_PROTOCOL, source_port, 4791), None, 5),) for name, way in ways.items()
    }


@asynccontextmanager
async def _programmed(*names: str) -> AsyncIterator[tuple[OpenFlowSouthbound, dict[str, FakeSwitch]]]:
    """A southbound, and its switches, none of them connected."""
    southbound = OpenFlowSouthbound(addresses_of(names), route(_FABRIC), LISTEN)
    fakes = {name: obedient() for name in names}
    for number, fake in enumerate(fakes.values(), start=1):
        fake.datapath_id = number
    async with southbound.hearing_ports(None), southbound:
        yield southbound, fakes
    for fake in fakes.values():
        with suppress(AttributeError):  # it has never connected
            fake.close()


def _conditions(southbound: OpenFlowSouthbound) -> dict[str, SwitchCondition]:
    return {status.name: status.condition for status in southbound.statuses()}


def _num_flow_mods(switch: FakeSwitch) -> int:
    kinds = fake_switch.FLOW_MOD, fake_switch.BUNDLE_ADD
    return sum(each.kind in kinds for each in switch.received)


def test_a_plan_waits_for_a_slow_switch_once_and_the_next_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openflow_switches, "_PATIENCE_S", 2.0)  # the other switch answers in time on a busy machine

    async def run() -> None:
        async with _programmed("t0", "t1") as (southbound, fakes):
            for fake in fakes.values():
                await fake.connect(southbound._connections.listens_at)
            await southbound.caught_up()
            slow = fakes["t0"]
            held_up: list[Received] = []

            def hold_up(each: Received) -> bytes:
                held_up.append(each)
                return b""

            slow.answers[fake_switch.BARRIER_REQUEST] = hold_up
            before = _num_flow_mods(fakes["t1"])
            await southbound.write(_rules(1))  # else this does not return
            one_is_late = {"t0": SwitchCondition.BEHIND, "t1": SwitchCondition.CAUGHT_UP}
            await until(lambda: _conditions(southbound) == one_is_late)
            assert _num_flow_mods(fakes["t1"]) == before + 1
            await until(lambda: not southbound._writers._late["t1"])  # a busy machine makes it late too
            monkeypatch.setattr(southbound._writers, "_patience_s", 1e6)
            for source_port in (2, 3):
                await southbound.write(_rules(source_port))
            assert _conditions(southbound) == one_is_late
            before = _num_flow_mods(slow)
            slow.answers[fake_switch.BARRIER_REQUEST] = slow.reply
            slow.send(b"".join(map(slow.reply, held_up)))
            await until(lambda: not southbound._writers._apart)
            assert _num_flow_mods(slow) == before + 2, "only the last rule is written, and the first one deleted"
            assert _conditions(southbound)["t0"] is SwitchCondition.CAUGHT_UP
            assert not southbound._writers._late["t0"]

    in_time(run)


def test_a_slow_switch_that_refuses_at_last_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openflow_switches, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(trying_again, "_FIRST_PAUSE_S", 0.1)

    async def run() -> None:
        async with _programmed("t0") as (southbound, fakes):
            fake = fakes["t0"]
            await fake.connect(southbound._connections.listens_at)
            await southbound.caught_up()
            held_up: list[bytes] = []

            def refuse_late(each: Received) -> bytes:
                held_up.append(fake.error(each, *_TABLE_FULL))
                return b""

            def answer_late(each: Received) -> bytes:
                held_up.append(fake.reply(each))
                return b""

            fake.answers[fake_switch.BUNDLE_ADD] = refuse_late
            fake.answers[fake_switch.BARRIER_REQUEST] = answer_late
            await southbound.write(_rules(1))
            fake.answers[fake_switch.BARRIER_REQUEST] = fake.reply
            fake.answers[fake_switch.BUNDLE_ADD] = lambda each: fake.error(each, *_TABLE_FULL)
            fake.answers[fake_switch.FLOW_MOD] = lambda each: fake.error(each, *_TABLE_FULL)
            fake.send(b"".join(held_up))
            await until(lambda: _conditions(southbound)["t0"] is SwitchCondition.REFUSES)
            assert "table full" in southbound.statuses()[0].problem
            fake.answers[fake_switch.BUNDLE_ADD] = fake._add_to_bundle
            fake.answers[fake_switch.FLOW_MOD] = lambda _: b""
            await southbound.caught_up()

    in_time(run)


def test_a_switch_that_refuses_when_it_connects_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pauses that grow, and without anybody who writes or reads back."""
    monkeypatch.setattr(trying_again, "_FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(trying_again, "_LAST_PAUSE_S", 0.3)
    monkeypatch.setattr(trying_again, "_TICK_S", 0.01)

    async def run() -> None:
        async with _programmed("t0") as (southbound, fakes):
            fake = fakes["t0"]
            fake.answers[fake_switch.FLOW_MOD] = lambda each: fake.error(each, *_TABLE_FULL)
            await fake.connect(southbound._connections.listens_at)
            pauses_s = southbound._trying_again._pauses_s
            seen = set[float]()

            def has_been_tried_four_times() -> bool:
                seen.update(pauses_s.values())
                return len(seen) == 3 and sum(each.kind == fake_switch.BUNDLE_CONTROL for each in fake.received) > 8

            await until(has_been_tried_four_times)
            assert sorted(seen) == pytest.approx([0.1, 0.2, 0.3])
            assert _conditions(southbound) == {"t0": SwitchCondition.REFUSES}
            fake.answers[fake_switch.FLOW_MOD] = lambda _: b""
            await southbound.caught_up()
            await until(lambda: not pauses_s)
            assert not southbound.statuses()[0].problem

    in_time(run)


@pytest.mark.parametrize("is_bundle", [False, True])
def test_what_a_cancelled_write_has_sent_is_carried_out_before_the_next_reading(is_bundle: bool) -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            await channel.write([flow_mod(6, "first")])
            num_before = len(switch.received)
            await channel.settle()
            assert len(switch.received) == num_before, "nothing is open, so nothing is asked"
            switch.answers[fake_switch.BARRIER_REQUEST] = lambda _: b""
            writing = asyncio.create_task(channel.write([flow_mod(6, "second")], bundle=is_bundle))
            await until(lambda: any(each.kind == fake_switch.BARRIER_REQUEST for each in switch.received[num_before:]))
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            settling = asyncio.create_task(channel.settle())
            barriers = 2
            await until(lambda: [each.kind for each in switch.received].count(fake_switch.BARRIER_REQUEST) > barriers)
            assert not settling.done()
            switch.send(switch.reply(switch.received[-1]))
            await settling
            num_before = len(switch.received)
            await channel.settle()
            assert len(switch.received) == num_before

    in_time(run)


def test_a_plan_that_a_switch_refuses_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openflow_switches, "_PATIENCE_S", 1e6)

    async def run() -> None:
        async with _programmed("t0") as (southbound, fakes):
            await fakes["t0"].connect(southbound._connections.listens_at)
            await southbound.caught_up()
            fakes["t0"].answers[fake_switch.FLOW_MOD] = lambda each: fakes["t0"].error(each, *_TABLE_FULL)
            with pytest.raises(SouthboundError, match="table full"):
                await southbound.write(_rules(1))

    in_time(run)
