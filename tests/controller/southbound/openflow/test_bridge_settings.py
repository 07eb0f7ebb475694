"""Bridges that forward on their own are refused by name, or made safe."""

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest

from controller.southbound.openflow.bridge_settings import BridgeSettings, UnsafeBridgeError, require_safe
from controller.southbound.openflow.ovsdb import OvsdbError
from tests.openvswitch import add_dummy_bridge, running_openvswitch
from tests.patience import PATIENCE_S
from topologies.openvswitch.daemons import OpenVSwitch

_STANDALONE = "fail_mode=standalone"
_IN_BAND = "other-config:disable-in-band=false"


@pytest.fixture(scope="module")
def switch() -> Iterator[OpenVSwitch]:
    """An Open vSwitch with bridges that are set in different ways."""
    with running_openvswitch() as running:
        add_dummy_bridge(running, "safe", 1, [1])
        add_dummy_bridge(running, "alone", 2, [1], _STANDALONE)
        add_dummy_bridge(running, "inband", 3, [1], _IN_BAND, controller="tcp:127.0.0.1:1")
        add_dummy_bridge(running, "both", 4, [1], "other-config:hwaddr=02:00:00:00:00:04", controller="tcp:127.0.0.1:1")
        running.vsctl("remove", "bridge", "both", "other_config", "disable-in-band", "--", "del-fail-mode", "both")
        add_dummy_bridge(running, "outside", 5, [1], _IN_BAND, controller="tcp:127.0.0.1:1")
        running.vsctl("set", "controller", "outside", "connection_mode=out-of-band")
        yield running


def _address(switch: OpenVSwitch) -> str:
    return f"unix:{switch.database_socket}"


async def _tried(address: str, datapath_id: int, *, configure: bool = False) -> tuple[str, ...]:
    async with asyncio.timeout(PATIENCE_S):
        return await require_safe(address, datapath_id, configure=configure)


@pytest.mark.parametrize("datapath_id", [1, 5])
def test_safe_bridges_are_left_alone(switch: OpenVSwitch, datapath_id: int) -> None:
    before = switch.vsctl("list", "bridge")
    assert asyncio.run(_tried(_address(switch), datapath_id, configure=True)) == ()
    assert switch.vsctl("list", "bridge") == before


@pytest.mark.parametrize(
    ("datapath_id", "told"),
    [
        (2, "bridge alone: fail_mode is standalone, .*: ovs-vsctl set-fail-mode alone secure$"),
        (3, "bridge inband: in-band control is on, .*: ovs-vsctl set bridge inband other-config:disable-in-band=true$"),
        (4, "bridge both: fail_mode is standalone.*; in-band control is on"),
        (99, "datapath id 0x63: no bridge has it"),
    ],
)
def test_bridges_that_forward_on_their_own_are_refused_by_name(
    switch: OpenVSwitch, datapath_id: int, told: str
) -> None:
    with pytest.raises(UnsafeBridgeError, match=told):
        asyncio.run(_tried(_address(switch), datapath_id))


def test_settings_are_set_where_that_is_wanted_and_no_others() -> None:
    with running_openvswitch() as switch:
        add_dummy_bridge(switch, "t0", 4, [1], _STANDALONE, "other-config:hwaddr=02:00:00:00:00:04")
        switch.vsctl("remove", "bridge", "t0", "other_config", "disable-in-band")
        assert "actions=NORMAL" in switch.appctl("bridge/dump-flows", "t0")
        done = asyncio.run(_tried(_address(switch), 4, configure=True))
        assert done == ("fail_mode=secure of bridge t0 is set", "disable-in-band=true of bridge t0 is set")
        found = switch.vsctl("get", "bridge", "t0", "fail_mode", "other_config").splitlines()
        assert found[0] == "secure"
        for setting in ('disable-in-band="true"', 'hwaddr="02:00:00:00:00:04"', 'datapath-id="0000000000000004"'):
            assert setting in found[1]
        assert asyncio.run(_tried(_address(switch), 4)) == ()


def test_two_bridges_with_one_datapath_id_are_named() -> None:
    with running_openvswitch() as switch:
        add_dummy_bridge(switch, "t0", 7, [])
        add_dummy_bridge(switch, "t1", 7, [])
        with pytest.raises(UnsafeBridgeError, match=r"datapath id 0x7: 2 bridges have it: t[01], t[01]"):
            asyncio.run(_tried(_address(switch), 7))


def test_a_database_over_tcp_is_asked_the_same(switch: OpenVSwitch) -> None:
    async def ask() -> None:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner_reader, inner_writer = await asyncio.open_unix_connection(switch.database_socket)
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

        async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(UnsafeBridgeError, match="bridge alone"):
                await _tried(f"tcp:127.0.0.1:{port}", 2)

    asyncio.run(ask())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while octets := await reader.read(7):
        writer.write(octets)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def _saying(octets: bytes) -> Iterator[str]:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(octets)
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        yield f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("octets", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else than OVSDB"),
        (b"[1]", "something else than OVSDB"),
        (b'{"id": 1, "result"', "it has closed the connection"),
        (
            b'{"id": 1, "error": {"error": "unknown database", "details": "no\\u001b[1m"}}',
            "it refuses: unknown database no",
        ),
        (b'{"method": "echo", "params": [], "id": "echo"}{"id": 1, "error": "busy"}', "it refuses: busy"),
        (b'{"id": 1, "result": [{"rows": [{"name": 1}]}, {"rows": []}]}', "something else than OVSDB"),
        (b'{"id": 1, "result": []}', "something else than OVSDB"),
        (b'{"id": 1, "result": ' + b"[" * 60_000, "something else than OVSDB"),
        (b"{" * (2 << 20), "something else than OVSDB|closed"),
    ],
)
def test_what_is_no_database_is_told_in_words(octets: bytes, told: str) -> None:
    async def ask() -> None:
        async with _saying(octets) as address:
            with pytest.raises(OvsdbError, match=told) as error:
                await _tried(address, 1)
            assert "\x1b" not in str(error.value)

    asyncio.run(ask())


@pytest.mark.parametrize("address", ["unix:/nonexistent/db.sock", "tcp:127.0.0.1:1"])
def test_a_database_that_is_not_there_is_told_in_words(address: str) -> None:
    with pytest.raises(OvsdbError, match=r"^no connection: "):
        asyncio.run(_tried(address, 1))


def test_a_name_of_a_bridge_cannot_write_on_the_terminal() -> None:
    settings = BridgeSettings("t\x1b[2J", None, is_in_band=True)
    assert "\x1b" not in "".join(settings.problems)
