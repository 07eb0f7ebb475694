"""Connections of a switch that end and begin while the controller is busy with them."""

import asyncio

from controller.southbound.fencing import TakeoverBarrier, first_election_id
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.connections import OpenFlowConnections
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.southbound import SwitchCondition
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, Received, obedient
from tests.controller.southbound.openflow.listening import in_time
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import LISTEN, addresses_of
from tests.patience import until
from topologies.clos import ClosSpecification

_FABRIC = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100).build()
_IS_SLAVE = 1, 10


class _Term:
    """The grant of a term."""

    term = 1

    async def granted(self) -> None:
        pass

    def doubt(self) -> None:
        pass


class _FirstWaits(TakeoverBarrier):
    """Holds up the first take-over until ``released`` is set."""

    def __init__(self) -> None:
        super().__init__(())
        self.num_arrived = 0
        self.num_gone_on = 0
        self.released = asyncio.Event()

    async def arrive(self, _switch: str) -> None:
        self.num_arrived += 1
        if self.num_arrived == 1:
            await self.released.wait()
        self.num_gone_on += 1


def test_a_take_over_that_comes_late_leaves_the_next_connection_alone() -> None:
    async def run() -> None:
        barrier = _FirstWaits()
        southbound = OpenFlowSouthbound(addresses_of(["t0"]), route(_FABRIC), LISTEN, grant=_Term(), barrier=barrier)
        first, second = obedient(), obedient()
        async with southbound.hearing_ports(None), southbound:
            address = southbound._connections.listens_at
            await first.connect(address)
            await until(lambda: barrier.num_arrived == 1)
            first.close()
            await until(lambda: not southbound._connections.channels)
            await second.connect(address)
            await southbound.caught_up()
            barrier.released.set()
            await until(lambda: barrier.num_gone_on == 2)
            await southbound.write({})
            (status,) = southbound.statuses()
            assert status.condition is SwitchCondition.CAUGHT_UP
            southbound.packets.send("t0", [(1, b"frame")])
            await until(lambda: any(each.kind == fake_switch.PACKET_OUT for each in second.received))
        second.close()

    in_time(run)


def test_a_connection_that_ends_while_entries_are_written_sends_no_packets() -> None:
    async def run() -> None:
        southbound = OpenFlowSouthbound(addresses_of(["t0"]), route(_FABRIC), LISTEN)
        switch = obedient()

        def hang_up(_: Received) -> bytes:
            switch.close()
            return b""

        switch.answers[fake_switch.FLOW_MOD] = hang_up
        async with southbound.hearing_ports(None), southbound:
            await switch.connect(southbound._connections.listens_at)
            await switch.has_ended.wait()
            await until(lambda: not southbound._connections.channels)
            await until(lambda: len(southbound._tasks) == 3)  # what goes on as long as the southbound
            assert not southbound.packets.connected

    in_time(run)


def test_a_higher_election_id_takes_back_a_switch_that_knows_a_later_term() -> None:
    """As where the database is new, and terms begin at 1 again."""

    async def run() -> None:
        switch = obedient()
        switch.generation_id = first_election_id(0, 5)
        southbound = OpenFlowSouthbound(
            addresses_of(["t0"]), route(_FABRIC), LISTEN, grant=_Term(), election_id=first_election_id(0, 5)
        )
        async with southbound.hearing_ports(None), southbound:
            await switch.connect(southbound._connections.listens_at)
            await southbound.caught_up()
            assert switch.generation_id == first_election_id(0, 6)
        switch.close()

    in_time(run)


def test_a_switch_that_is_lost_while_it_is_taken_over_sends_no_packets() -> None:
    async def run() -> None:
        southbound = OpenFlowSouthbound(addresses_of(["t0"]), route(_FABRIC), LISTEN)
        switch = obedient()
        switch.answers[fake_switch.FLOW_MOD] = lambda each: switch.error(each, *_IS_SLAVE)
        async with southbound.hearing_ports(None), southbound:
            await switch.connect(southbound._connections.listens_at)
            await until(lambda: southbound.statuses()[0].condition is SwitchCondition.LOST)
            await until(lambda: len(southbound._tasks) == 3)  # the take-over has ended
            assert not southbound.packets.connected
        switch.close()

    in_time(run)


def test_a_switch_with_another_name_connects_anew() -> None:
    async def run() -> None:
        before, after = (addresses_of([name]) for name in ("t0", "x0"))
        connections = OpenFlowConnections(before, LISTEN)
        taken: list[tuple[str, OpenFlowChannel]] = []
        connections.on_channel = lambda name, channel: taken.append((name, channel))
        async with connections.connected(None):
            first, second = FakeSwitch(), FakeSwitch()
            await first.connect(connections.listens_at)
            await until(lambda: len(taken) == 1)
            await connections.follow(after)
            await first.has_ended.wait()
            await second.connect(connections.listens_at)
            await until(lambda: len(taken) == 2)
            assert [name for name, _ in taken] == ["t0", "x0"]
            assert connections.channels.keys() == {"x0"}
        second.close()

    in_time(run)
