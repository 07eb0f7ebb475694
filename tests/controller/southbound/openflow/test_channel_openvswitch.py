"""Channels to a real Open vSwitch: what it takes, refuses and tells, and what ``ovs-ofctl`` says it holds."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from controller.access.tls_files import TlsFiles
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import Misbehaviour, RefusedError, StaleError
from controller.southbound.openflow.connecting import keep_connected
from controller.southbound.openflow.control_messages import Role
from controller.southbound.openflow.entries import (
    FlowEntry,
    FlowKey,
    Forward,
    Group,
    GroupType,
    Match,
    Table,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.flow_encoder import FlowCommand, encode_flow_mod
from controller.southbound.openflow.flow_stats import decode_flow_stats, flows_request
from controller.southbound.openflow.group_messages import GroupCommand, encode_group_mod
from controller.southbound.openflow.packet_messages import PacketIn, decode_packet_in, encode_packet_out
from tests.certificates import Authority
from tests.controller.southbound.openflow.listening import PATIENT, Listening, in_time, listening, num_refused
from tests.openvswitch import add_dummy_bridge, running_openvswitch
from tests.patience import until
from topologies.addressing import MacAddress
from topologies.openvswitch.daemons import OpenVSwitch

pytestmark = pytest.mark.slow

_IPV4 = 0x0800
VERSIONS = pytest.mark.parametrize(
    ("protocols", "version"), [("OpenFlow13", 4), ("OpenFlow10,OpenFlow13,OpenFlow15", 6)]
)


@pytest.fixture(scope="module")
def daemons() -> Iterator[OpenVSwitch]:
    with running_openvswitch() as openvswitch:
        yield openvswitch


@pytest.fixture
def openvswitch(daemons: OpenVSwitch) -> Iterator[OpenVSwitch]:
    """An Open vSwitch without bridges, before and after the test."""
    yield daemons
    for name in daemons.vsctl("list-br").split():
        daemons.vsctl("del-br", name)


async def _bridge(openvswitch: OpenVSwitch, at: Listening, *settings: str, scheme: str = "tcp") -> OpenFlowChannel:
    """Add a bridge with the ports 1 and 2 that connects, and return its channel."""
    num_before = len(at.channels)
    target = f"{scheme}:{at.address}"
    await asyncio.to_thread(add_dummy_bridge, openvswitch, "t0", 0x1A, (1, 2), *settings, controller=target)
    await until(lambda: len(at.channels) > num_before)
    return at.channels[-1]


def _flow_mods(version: int, numbers: Sequence[int], *actions: ToController | ToGroup) -> list[bytes]:
    entries = [FlowEntry(FlowKey(Table.RULES, number + 1, Match(_IPV4)), actions, Table.ROUTING) for number in numbers]
    return [encode_flow_mod(entry, FlowCommand.ADD, 7 << 32, version) for entry in entries]


def _held(openvswitch: OpenVSwitch) -> list[str]:
    return [line for line in openvswitch.ofctl("dump-flows", "t0").splitlines() if "cookie=" in line]


@VERSIONS
def test_what_a_write_has_returned_for_is_there(openvswitch: OpenVSwitch, protocols: str, version: int) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at, f"protocols={protocols}")
            assert (channel.version, channel.datapath_id) == (version, 0x1A)
            assert {number: port.name for number, port in channel.ports.items()} == {1: "t0-1", 2: "t0-2"}
            await channel.write(_flow_mods(version, range(3_000)))
            assert len(_held(openvswitch)) == 3_000
            replies = await channel.request(flows_request(7 << 32, 0xFFFFFFFF << 32, version))
            assert len(decode_flow_stats(replies, version)) == 3_000

    in_time(run)


@VERSIONS
def test_refusals_are_told_by_index(openvswitch: OpenVSwitch, protocols: str, version: int) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at, f"protocols={protocols}")
            mods = _flow_mods(version, range(1_200))
            mods[3], mods[1_100] = _flow_mods(version, (3, 1_100), ToGroup(99))
            with pytest.raises(RefusedError) as refused:
                await channel.write(mods)
            words = "bad action: bad out group (OFPBAC_BAD_OUT_GROUP)"
            assert {index: each.words for index, each in refused.value.refusals.items()} == {3: words, 1_100: words}
            assert len(_held(openvswitch)) == 1_198

    in_time(run)


@VERSIONS
def test_a_bundle_is_all_or_nothing(openvswitch: OpenVSwitch, protocols: str, version: int) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at, f"protocols={protocols}")
            await channel.write(_flow_mods(version, range(2_000)), bundle=True)
            assert len(_held(openvswitch)) == 2_000
            mods = [*_flow_mods(version, (2_000,)), *_flow_mods(version, (2_001,), ToGroup(99))]
            with pytest.raises(RefusedError, match="number 1: bad action: bad out group"):
                await channel.write(mods, bundle=True)
            assert len(_held(openvswitch)) == 2_000
            await channel.write(mods[:1], bundle=True)
            assert len(_held(openvswitch)) == 2_001
            group = Group(99, GroupType.INDIRECT, (Forward(1, MacAddress(1), MacAddress(2)),))
            await channel.write([encode_group_mod(group, GroupCommand.ADD, version), *mods], bundle=True)
            assert len(_held(openvswitch)) == 2_002

    in_time(run)


@VERSIONS
def test_the_controller_of_the_newer_generation_fences_the_other(
    openvswitch: OpenVSwitch, protocols: str, version: int
) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at, listening([0x1A]) as other:
            old = await _bridge(openvswitch, at, f"protocols={protocols}")
            roles: list[Role] = []
            old.on_role = roles.append
            await old.claim(1)
            await old.write(_flow_mods(version, (0,)))
            await asyncio.to_thread(
                openvswitch.vsctl, "set-controller", "t0", f"tcp:{at.address}", f"tcp:{other.address}"
            )
            await until(lambda: bool(other.channels))
            new = other.channels[-1]
            await new.claim(2)
            for bundle in (False, True):
                with pytest.raises(StaleError, match="another controller is the master"):
                    await old.write(_flow_mods(version, (1,)), bundle=bundle)
            with pytest.raises(StaleError, match="claimed the switch later"):
                await old.claim(1)
            await new.write(_flow_mods(version, (2,)))
            assert len(_held(openvswitch)) == 2
            assert roles == ([Role.SLAVE] if version == 6 else [])

    in_time(run)


@VERSIONS
def test_port_states_are_told(openvswitch: OpenVSwitch, protocols: str, version: int) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at, f"protocols={protocols}")
            assert channel.version == version
            await until(lambda: channel.ports[1].is_up)
            for word, is_up in (("down", False), ("up", True)):
                await asyncio.to_thread(openvswitch.ofctl, "mod-port", "t0", "1", word)
                await until(lambda expected=is_up: channel.ports[1].is_up is expected)
            await asyncio.to_thread(openvswitch.vsctl, "del-port", "t0-2")
            await until(lambda: list(channel.ports) == [1])

    in_time(run)


@VERSIONS
def test_frames_come_and_go(openvswitch: OpenVSwitch, protocols: str, version: int) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at, f"protocols={protocols}")
            arrived: list[PacketIn] = []
            channel.on_packet_in = lambda message: arrived.append(decode_packet_in(message, version))
            lldp = FlowEntry(FlowKey(Table.ADMISSION, 1, Match(0x88CC)), (ToController(0xFFFF),))
            await channel.write([encode_flow_mod(lldp, FlowCommand.ADD, 5, version)])
            frame = bytes.fromhex("0180c200000e02000000000188cc") + bytes(46)
            await asyncio.to_thread(openvswitch.appctl, "netdev-dummy/receive", "t0-2", frame.hex())
            await until(lambda: bool(arrived))
            assert (arrived[0].port, arrived[0].cookie, arrived[0].octets) == (2, 5, frame)
            channel.send([encode_packet_out(1, frame, version)])
            await until(lambda: "tx pkts=1" in openvswitch.ofctl("dump-ports", "t0", "1"))

    in_time(run)


def test_a_switch_that_speaks_1_0_alone_is_refused(openvswitch: OpenVSwitch, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.VERSION)
        async with listening([0x1A]) as at:
            target = f"tcp:{at.address}"
            await asyncio.to_thread(
                add_dummy_bridge, openvswitch, "t0", 0x1A, (1,), "protocols=OpenFlow10", controller=target
            )
            await until(lambda: num_refused(Misbehaviour.VERSION) > before)

    in_time(run)
    assert "refused: speaks OpenFlow 1.0; 1.3 or 1.5 is needed" in caplog.text


def test_a_switch_that_restarts_is_back_empty(openvswitch: OpenVSwitch) -> None:
    async def run() -> None:
        async with listening([0x1A]) as at:
            channel = await _bridge(openvswitch, at)
            await channel.write(_flow_mods(6, range(10)))
            openvswitch.restart_switch()  # here: the daemon ends with the thread that starts it
            await until(lambda: len(at.channels) == 2)
            assert not channel.is_open
            replies = await at.channels[-1].request(flows_request(0, 0, 6))
            assert decode_flow_stats(replies, 6) == []

    in_time(run)


def test_a_bridge_that_listens_is_connected(openvswitch: OpenVSwitch) -> None:
    async def run() -> None:
        channels: list[OpenFlowChannel] = []
        ends: list[str] = []
        await asyncio.to_thread(add_dummy_bridge, openvswitch, "t0", 0x1A, (1,), controller="ptcp:0:127.0.0.1")
        port = ""
        while not port:
            logged = [log.read_text() for log in openvswitch.folder.glob("*.log")]
            port = "".join(re.findall(r"127\.0\.0\.1: listening on port (\d+)", "".join(logged))[-1:])
            await asyncio.sleep(0.01)
        connecting = asyncio.create_task(
            keep_connected(f"127.0.0.1:{port}", 0x1A, channels.append, ends.append, limits=PATIENT)
        )
        await until(lambda: bool(channels))
        await channels[0].write(_flow_mods(6, range(10)))
        assert len(_held(openvswitch)) == 10
        await asyncio.to_thread(openvswitch.ofctl, "mod-port", "t0", "1", "down")
        await until(lambda: not channels[0].ports[1].is_up)
        connecting.cancel()
        await asyncio.wait([connecting])

    in_time(run)


def test_a_bridge_connects_by_tls(openvswitch: OpenVSwitch, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, switch = authority.issue("controller"), authority.issue("switch")
    files = TlsFiles(ca=authority.ca, certificate=own.certificate, key=own.key)
    openvswitch.vsctl("set-ssl", str(switch.key), str(switch.certificate), str(authority.ca))

    async def run() -> None:
        async with listening([0x1A], tls=files) as at:
            channel = await _bridge(openvswitch, at, scheme="ssl")
            await channel.write(_flow_mods(6, range(1_000)))
            assert len(_held(openvswitch)) == 1_000

    in_time(run)
    openvswitch.vsctl("del-ssl")
