"""Switches of a private Open vSwitch hold what the southbound was given, whatever happens in between."""

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import JobRule
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.switch_addresses import SwitchAddress
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import (
    LISTEN,
    Programmed,
    add_bridges,
    addresses_of,
    flows_of,
    groups_of,
)
from tests.openvswitch import running_openvswitch
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.clos import ClosSpecification
from topologies.fabric import Fabric
from topologies.openflow_specification import OpenFlowSpecification
from topologies.openvswitch.daemons import OpenVSwitch


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100).build()


@pytest.fixture
def openvswitch(fabric: Fabric) -> Iterator[OpenVSwitch]:
    with running_openvswitch() as running:
        add_bridges(running, fabric)
        yield running


def _rule(fabric: Fabric, port: int = 4791, level: int | None = 5) -> FlowRule:
    """A rule of t0 that steers a flow from h0 to h3 by the last uplink."""
    source, destination = (fabric.nics[host][0].address for host in ("h0", "h3"))
    uplink = max(link.index for link in fabric.links_from["t0"] if link.destination in fabric.switches)
    return FlowRule("t0", FiveTuple(source, destination, UDP_PROTOCOL, port, 4791), uplink, level)


def _held(openvswitch: OpenVSwitch, fabric: Fabric) -> dict[str, tuple[list[str], list[str]]]:
    return {name: (flows_of(openvswitch, name), groups_of(openvswitch, name)) for name in fabric.switches}


async def _caught_up(programmed: Programmed) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await programmed.southbound.caught_up()


def test_a_controller_that_starts_again_writes_only_the_difference(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    """Rules stay until the next controller forgets them, and what both want is not written again."""
    routing, addresses = route(fabric), addresses_of(fabric.switches)
    rule, other = _rule(fabric), _rule(fabric, 4792)

    async def play() -> None:
        first, second, third = (Programmed(routing, addresses) for _ in range(3))
        async with first.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (rule,)})
            await _caught_up(first)
            assert {status.num_rules for status in southbound.statuses()} == {0, 1}
            held = _held(openvswitch, fabric)
        assert any("udp" in line and "nw_src=" in line for line in held["t0"][0])
        assert all(groups for _, groups in held.values())
        async with second.running(openvswitch, fabric.switches) as southbound:
            await _caught_up(second)
            assert (second.num_written, _held(openvswitch, fabric)) == (0, held)
            await southbound.write({"t0": (rule, other)})
            assert second.num_written == 1
        async with third.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (other,)})
            await _caught_up(third)
            assert third.num_written == 0
            await southbound.forget_found()
            assert third.num_written == 1
            await southbound.release()
            assert {status.num_rules for status in southbound.statuses()} == {0}
        assert not any("nw_src=" in line for line in flows_of(openvswitch, "t0"))

    asyncio.run(play())


def test_what_somebody_else_has_changed_is_repaired(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    routing, addresses = route(fabric), addresses_of(fabric.switches)

    async def play() -> None:
        programmed = Programmed(routing, addresses)
        async with programmed.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (_rule(fabric),)})
            await _caught_up(programmed)
            held = _held(openvswitch, fabric)
            openvswitch.ofctl("add-flow", "t0", "cookie=0x1,table=2,priority=300,udp,actions=drop")
            with_operators = flows_of(openvswitch, "t0")
            openvswitch.ofctl("del-flows", "t0", "udp,table=2")
            openvswitch.ofctl("add-flow", "t0", "cookie=0x1,table=2,priority=300,udp,actions=drop")
            openvswitch.ofctl("--bundle", "mod-flows", "t0", "table=3,ip,actions=drop")
            (group, *_) = (line for line in held["t0"][1] if "type=select" in line)
            (number,) = (part.removeprefix("group_id=") for part in group.split(",") if part.startswith("group_id="))
            openvswitch.ofctl("mod-group", "t0", f"group_id={number},type=all,bucket=drop")
            openvswitch.ofctl("mod-group", "t0", "group_id=1,type=ff,bucket=watch_port:1,actions=output:1")
            openvswitch.ofctl("mod-flows", "t0", "table=0,ip,actions=output:1")  # with the same cookie
            await southbound.read_back()
            assert flows_of(openvswitch, "t0") == with_operators
            assert groups_of(openvswitch, "t0") == held["t0"][1]
            (status,) = (each for each in southbound.statuses() if each.name == "t0")
            assert (status.condition, status.drifted > 2) == (SwitchCondition.CAUGHT_UP, True)
            drifted = programmed.num_written
            await southbound.read_back()
            assert programmed.num_written == drifted

    asyncio.run(play())


def test_ports_are_heard_and_a_switch_that_restarts_gets_all_again(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    routing, addresses = route(fabric), addresses_of(fabric.switches)

    async def play() -> None:
        programmed = Programmed(routing, addresses)
        async with programmed.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (_rule(fabric),)})
            await _caught_up(programmed)
            assert programmed.ports.states.keys() == set(fabric.switches)
            openvswitch.ofctl("mod-port", "t0", "1", "down")
            await until(lambda: programmed.ports.states["t0"][1] is False)
            assert programmed.ports.states["t1"][1]
            held = _held(openvswitch, fabric)
            programmed.writes.clear()
            await asyncio.to_thread(openvswitch.restart_switch)
            await until(lambda: {write.switch for write in programmed.writes} == set(fabric.switches))
            await _caught_up(programmed)
            assert _held(openvswitch, fabric) == held

    asyncio.run(play())


class _Term:
    """The grant of a term; ``doubts`` counts how often it was doubted."""

    def __init__(self, term: int) -> None:
        self.term = term
        self.doubts = 0

    async def granted(self) -> None:
        pass

    def doubt(self) -> None:
        self.doubts += 1


def test_a_former_leader_can_write_no_longer(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    routing, addresses = route(fabric), addresses_of(fabric.switches)
    old, new = _Term(3), _Term(4)

    async def play() -> None:
        former, leader = Programmed(routing, addresses, grant=old), Programmed(routing, addresses, grant=new)
        async with former.running(openvswitch, fabric.switches) as southbound:
            await _caught_up(former)
            async with leader.southbound.hearing_ports(leader.ports), leader.southbound:
                for name in fabric.switches:
                    places = f"tcp:{former.place}", f"tcp:{leader.place}"
                    openvswitch.vsctl("set-controller", name, *places)
                await _caught_up(leader)
                await until(lambda: {each.condition for each in southbound.statuses()} == {SwitchCondition.LOST})
                assert all("lost to another controller" in each.problem for each in southbound.statuses())
                assert old.doubts
                assert not new.doubts
                held = _held(openvswitch, fabric)
                await southbound.write({"t0": (_rule(fabric),)})
                assert _held(openvswitch, fabric) == held
                with pytest.raises(SouthboundError, match="lost to another controller"):
                    await southbound.caught_up()

    asyncio.run(play())


def test_a_bridge_that_forwards_on_its_own_gets_nothing(fabric: Fabric) -> None:
    with running_openvswitch() as openvswitch:
        add_bridges(openvswitch, fabric, "fail_mode=standalone")
        addresses = addresses_of(fabric.switches, ovsdb=f"unix:{openvswitch.database_socket}")

        async def play() -> None:
            refusing = Programmed(route(fabric), addresses)
            async with refusing.running(openvswitch, fabric.switches) as southbound:
                await until(lambda: all("fail_mode is standalone" in each.problem for each in southbound.statuses()))
            assert not refusing.writes
            config = LISTEN.model_copy(update={"configure": True})
            setting = Programmed(route(fabric), addresses, config)
            async with setting.running(openvswitch, fabric.switches):
                await _caught_up(setting)
            assert openvswitch.vsctl("get", "bridge", "t0", "fail_mode").strip() == "secure"

        asyncio.run(play())


def _receive(openvswitch: OpenVSwitch, interface: str, frame: bytes) -> None:
    """Have a frame come in by a port."""
    openvswitch.appctl("netdev-dummy/receive", interface, frame.hex())


def _udp_frame(source: int, destination: int, payload_bytes: int, source_port: int = 5000) -> bytes:
    udp = struct.pack("!HHHH", source_port, 4791, 8 + payload_bytes, 0) + bytes(payload_bytes)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, UDP_PROTOCOL, 0, source, destination)
    return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + udp


def _marked(frame: bytes, dscp: int) -> bytes:
    return frame[:15] + bytes((dscp << 2,)) + frame[16:]


def test_jobs_and_ports_are_counted(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    routing, addresses = route(fabric), addresses_of(fabric.switches)
    source, destination = fabric.nics["h0"][0], fabric.nics["h3"][0]
    (prefix,) = fabric.host_prefixes["h3"]
    rule = JobRule("t0", source.address, "h3", prefix, 3)
    frame = _udp_frame(source.address, destination.address, 400)

    async def play() -> None:
        programmed = Programmed(routing, addresses)
        async with programmed.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (rule, _rule(fabric))})
            await _caught_up(programmed)
            for _ in range(3):
                _receive(openvswitch, f"t0-{fabric.links[source.link].destination_port}", frame)
            uplinks = [link.index for link in fabric.links_from["t0"] if link.destination in fabric.switches]
            async with asyncio.timeout(PATIENCE_S):
                while not (counted := await southbound.job_bytes(["t0", "no switch"])) or not any(counted.values()):
                    await asyncio.sleep(0.01)
                while sum((await southbound.link_bytes(uplinks)).values()) < 3 * len(frame):
                    await asyncio.sleep(0.01)
            assert counted.keys() == {(source.address, "h3")}

    asyncio.run(play())


@pytest.mark.parametrize("protocol", ["OpenFlow13", "OpenFlow15"])
def test_what_a_measured_job_sends_is_counted_by_links(openvswitch: OpenVSwitch, fabric: Fabric, protocol: str) -> None:
    """Also by the links that the hash chooses among; and what was counted stays when the entries are gone."""
    routing, addresses = route(fabric), addresses_of(fabric.switches)
    source, destination = fabric.nics["h0"][0], fabric.nics["h3"][0]
    (prefix,) = fabric.host_prefixes["h3"]
    rule = JobRule("t0", source.address, "h3", prefix, 3, is_measured=True)
    frames = [_udp_frame(source.address, destination.address, 400, port) for port in range(5000, 5012)]
    uplinks = [link.index for link in fabric.links_from["t0"] if link.destination in fabric.switches]
    (last,) = (link.index for link in fabric.links_from["t1"] if link.destination == "h3")
    for name in fabric.switches:
        openvswitch.vsctl("set", "bridge", name, f"protocols={protocol}")

    async def play() -> None:
        programmed = Programmed(routing, addresses)
        async with programmed.running(openvswitch, fabric.switches) as southbound:
            await southbound.write({"t0": (rule,)})
            await _caught_up(programmed)
            assert {status.num_rules for status in southbound.statuses()} == {0, 1}
            for frame in frames:
                _receive(openvswitch, f"t0-{fabric.links[source.link].destination_port}", frame)
            _receive(openvswitch, "t1-3", _marked(frames[0], 3 * 8))
            _receive(openvswitch, "t1-3", _marked(frames[1], 4 * 8))

            async def counted() -> dict[int, int]:
                found = await southbound.level_bytes(3)
                assert found is not None
                assert found.keys() == {link.index for name in fabric.switches for link in fabric.links_from[name]}
                return dict(found)

            expected = sum(map(len, frames))
            async with asyncio.timeout(PATIENCE_S):
                while sum((found := await counted()).values()) < expected + len(frames[0]):
                    await asyncio.sleep(0.01)
            assert sum(found[link] for link in uplinks) == expected
            # By version 1.3, Open vSwitch's hash does not look at the ports of UDP.
            assert sum(found[link] > 0 for link in uplinks) == (1 if protocol == "OpenFlow13" else 2)
            assert found[last] == len(frames[0])
            await southbound.write({"t0": (replace(rule, is_measured=False),)})
            assert not any("priority=64" in line for line in flows_of(openvswitch, "t0"))
            assert await counted() == found
            await southbound.write({"t0": (rule,)})
            assert await counted() == found

    asyncio.run(play())


def test_frames_for_the_controller_are_handed_up_with_their_port(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    routing, addresses = route(fabric), addresses_of(fabric.switches)
    lldp = bytes.fromhex("0180c200000e02000000000288cc") + bytes(50)

    async def play() -> None:
        programmed = Programmed(routing, addresses)
        async with programmed.running(openvswitch, fabric.switches) as southbound:
            await _caught_up(programmed)
            woken = asyncio.Event()
            southbound.packets.listen(woken.set)
            await until(lambda: set(southbound.packets.connected) == set(fabric.switches))
            _receive(openvswitch, "t1-2", lldp)
            await asyncio.wait_for(woken.wait(), PATIENCE_S)
            (arrival,) = southbound.packets.take(10)
            assert (arrival.switch, arrival.port, arrival.octets) == ("t1", 2, lldp)
            sent = await southbound.link_bytes([link.index for link in fabric.links_from["t1"]])
            southbound.packets.send("t1", [(2, lldp), (1, lldp)])
            async with asyncio.timeout(PATIENCE_S):
                while sum((await southbound.link_bytes(sent)).values()) < sum(sent.values()) + 2 * len(lldp):
                    await asyncio.sleep(0.01)

    asyncio.run(play())


def test_switches_that_listen_are_connected_to(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    numbers = [free_port() for _ in fabric.switches]
    for name, number in zip(fabric.switches, numbers, strict=True):
        openvswitch.vsctl("set-controller", name, f"ptcp:{number}:127.0.0.1")
    addresses = [
        SwitchAddress(name=name, openflow=OpenFlowSpecification(datapath_id=at, connect=f"127.0.0.1:{number}"))
        for at, (name, number) in enumerate(zip(fabric.switches, numbers, strict=True), start=1)
    ]

    async def play() -> None:
        programmed = Programmed(route(fabric), addresses)
        async with programmed.southbound.hearing_ports(programmed.ports), programmed.southbound as southbound:
            await _caught_up(programmed)
            assert programmed.place == ""
            assert {each.address for each in southbound.statuses()} == {f"127.0.0.1:{number}" for number in numbers}
            openvswitch.vsctl("del-controller", "t0")
            async with asyncio.timeout(PATIENCE_S):
                await southbound.caught_up(down=["t0"])
            await until(lambda: all(bool(each.problem) is (each.name == "t0") for each in southbound.statuses()))

    asyncio.run(play())
