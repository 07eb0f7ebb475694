"""gNMI Set: ports of a fabric are disabled and enabled, by finsy's own client, and a controller hears of it."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from finsy.gnmiclient import GNMIClient, GNMIClientError
from finsy.gnmipath import GNMIPath
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import gnmi

from controller.links.port_states import PortStateTable
from controller.southbound.gnmi import GnmiPortMonitor
from emulator.interfaces import InterfaceError
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.emulator.p4runtime.clients import run, serving
from tests.emulator.p4runtime.fake_switch import FakeSwitch
from tests.integration.fabrics import ServedFabric, served_dumbbell, served_fabric
from topologies.fabric_specification import FabricSpecification

T0, T1 = GNMIPath(target="t0"), GNMIPath(target="t1")
BETWEEN = 3
"""The port of the cable between the two switches of the dumbbell, on both."""


def enabled(port: int, switch: str = "t0") -> GNMIPath:
    return GNMIPath(f"interfaces/interface[name={switch}-eth{port}]/config/enabled")


def up_ports(served: ServedFabric, switch: str) -> set[int]:
    ports = served.emulated.switches[switch].ports
    return {port for port in ports if ports.is_up(port)}


def in_a_dumbbell(test: Callable[[ServedFabric, GNMIClient], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        async with served_dumbbell() as served, GNMIClient(served.address) as client:
            await test(served, client)

    run(scenario())


def test_a_disabled_port_takes_its_cable_down_in_both_directions_and_comes_back() -> None:
    async def test(served: ServedFabric, client: GNMIClient) -> None:
        both = served.emulated.fabric.links_between("t0", "t1") + served.emulated.fabric.links_between("t1", "t0")
        await client.set(update=[(enabled(BETWEEN), False)], prefix=T0)
        assert not any(map(served.emulated.is_up, both))
        assert (up_ports(served, "t0"), up_ports(served, "t1")) == ({1, 2}, {1, 2})
        assert await client.set(replace=[(enabled(BETWEEN), True)], prefix=T0) > 0
        assert all(map(served.emulated.is_up, both))
        assert (up_ports(served, "t0"), up_ports(served, "t1")) == ({1, 2, 3}, {1, 2, 3})

    in_a_dumbbell(test)


def test_what_else_holds_a_link_down_goes_on_doing_so() -> None:
    async def test(served: ServedFabric, client: GNMIClient) -> None:
        (link,) = served.emulated.fabric.links_between("t0", "t1")

        async def set_both(up: bool) -> None:
            await client.set(update=[(enabled(BETWEEN), up)], prefix=T0)
            await client.set(update=[(enabled(BETWEEN, "t1"), up)], prefix=T1)

        await set_both(False)
        await client.set(update=[(enabled(BETWEEN), True)], prefix=T0)
        assert not served.emulated.is_up(link)  # the other end is disabled
        await set_both(False)
        served.emulated.set_link(link, up=False)
        await set_both(True)
        assert not served.emulated.is_up(link)
        assert served.emulated.is_up(served.emulated.fabric.reverse(link))
        await set_both(False)
        served.emulated.set_link(link, up=True)
        assert not served.emulated.is_up(link)
        served.emulated.set_switch("t1", up=False)
        await client.set(update=[(enabled(BETWEEN), True)], prefix=T0)
        served.emulated.set_switch("t1", up=True)
        assert not served.emulated.is_up(link)  # a switch keeps what is disabled when it loses power
        await set_both(True)
        assert served.emulated.is_up(link)

    in_a_dumbbell(test)


def test_what_is_set_can_be_read_and_is_told_to_subscribers() -> None:
    interface = GNMIPath("interfaces/interface[name=t0-eth3]")

    async def test(_: ServedFabric, client: GNMIClient) -> None:
        subscription = client.subscribe(prefix=T0)
        subscription.on_change(interface)
        assert len([update async for update in subscription.synchronize()]) == 6
        await client.set(update=[(enabled(BETWEEN), False)], prefix=T0)
        told: dict[tuple[str, str], object] = {}
        async for update in subscription.updates():
            told[str(update.path[2]), update.path.last] = update.value
            if len(told) == 4:
                break
        subscription.cancel()
        assert told == {
            ("state", "oper-status"): "DOWN",
            ("state", "admin-status"): "DOWN",
            ("state", "enabled"): False,
            ("config", "enabled"): False,
        }
        (config,) = await client.get(interface, prefix=T0, config=True)
        assert (config.path.last, config.value) == ("enabled", False)
        ends = await client.get(GNMIPath("interfaces/interface[name=t1-eth3]/state"), prefix=T1)
        states = {update.path.last: update.value for update in ends}
        assert (states["oper-status"], states["admin-status"]) == ("DOWN", "UP")

    in_a_dumbbell(test)


def test_the_controller_hears_of_the_ports_at_both_ends() -> None:
    async def test(served: ServedFabric, client: GNMIClient) -> None:
        heard = PortStateTable(served.emulated.switches)
        async with GnmiPortMonitor(served.addresses(), heard):
            await heard.caught_up(down=())
            await client.set(update=[(enabled(BETWEEN), False)], prefix=T0)
            await heard.caught_up(down=(("t0", BETWEEN), ("t1", BETWEEN)))
            await client.set(update=[(enabled(BETWEEN), True)], prefix=T0)
            await heard.caught_up(down=())

    in_a_dumbbell(test)


STATE = GNMIPath("interfaces/interface[name=t0-eth1]/state/enabled")
MTU = GNMIPath("interfaces/interface[name=t0-eth1]/config/mtu")


@pytest.mark.parametrize(
    ("request_", "code", "named"),
    [
        ({"update": [(enabled(9), False)]}, GRPCStatusCode.NOT_FOUND, "switch t0 has no interface t0-eth9"),
        ({"update": [(enabled(1, "t1"), False)]}, GRPCStatusCode.NOT_FOUND, "switch t0 has no interface t1-eth1"),
        ({"update": [(enabled(1).set(name="*"), False)]}, GRPCStatusCode.NOT_FOUND, r"has no interface \*"),
        ({"update": [(STATE, False)]}, GRPCStatusCode.INVALID_ARGUMENT, r"name=t0-eth1\]/state/enabled cannot be set"),
        ({"replace": [(MTU, 9000)]}, GRPCStatusCode.INVALID_ARGUMENT, r"name=t0-eth1\]/config/mtu cannot be set"),
        ({"update": [(enabled(1), "false")]}, GRPCStatusCode.INVALID_ARGUMENT, "takes a bool_val, not string_val"),
        ({"delete": [enabled(1)]}, GRPCStatusCode.UNIMPLEMENTED, "delete and union_replace are not supported"),
    ],
)
def test_what_cannot_be_set_is_refused_by_name_and_nothing_of_the_request_is_done(
    request_: dict[str, Any], code: GRPCStatusCode, named: str
) -> None:
    async def test(served: ServedFabric, client: GNMIClient) -> None:
        sound = [(enabled(2), False), (enabled(BETWEEN), False)]
        with pytest.raises(GNMIClientError, match=named) as refused:
            await client.set(**{"update": [], **request_, "replace": sound + request_.get("replace", [])}, prefix=T0)
        assert refused.value.code is code
        assert up_ports(served, "t0") == {1, 2, BETWEEN}

    in_a_dumbbell(test)


def test_a_value_that_is_missing_is_refused() -> None:
    async def test(_: ServedFabric, client: GNMIClient) -> None:
        with pytest.raises(GNMIClientError, match="takes a bool_val, not None"):
            await client.set(update=[(enabled(1), gnmi.TypedValue())], prefix=T0)

    in_a_dumbbell(test)


def test_a_set_waits_for_whoever_has_the_fabric() -> None:
    async def test(served: ServedFabric, client: GNMIClient) -> None:
        async with served.exclusive:
            setting = asyncio.create_task(client.set(update=[(enabled(BETWEEN), False)], prefix=T0))
            await client.get(enabled(BETWEEN), prefix=T0)  # by then the server has the earlier request
            assert up_ports(served, "t0") == {1, 2, BETWEEN}
        await setting
        assert up_ports(served, "t0") == {1, 2}

    in_a_dumbbell(test)


def test_the_command_sets_a_port() -> None:
    async def test(served: ServedFabric, _: GNMIClient) -> None:
        for state, expected in (("down", {1, 2}), ("up", {1, 2, BETWEEN})):
            command = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "trainyard", "port", served.address, "t0", str(BETWEEN), state)
            )
            assert await command.wait() == 0
            assert up_ports(served, "t0") == expected

    in_a_dumbbell(test)


def test_an_interface_that_cannot_follow_is_told(pipeline: Pipeline) -> None:
    def set_port(switch: str, port: int, *, enabled: bool) -> None:
        raise InterfaceError(f"interface 'f{port}' of {switch} cannot be set {enabled}")

    async def test() -> None:
        service = P4RuntimeService([FakeSwitch(1)], pipeline, asyncio.Lock())
        async with serve(service, set_port=set_port) as port, GNMIClient(f"127.0.0.1:{port}") as client:
            with pytest.raises(GNMIClientError, match="switch1, port 1: interface 'f1' of switch1 cannot be set False"):
                await client.set(update=[(enabled(1, "switch1"), False)])

    run(test())


def test_without_a_fabric_nothing_can_be_set(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, GNMIClient(served.address) as client:
            with pytest.raises(GNMIClientError, match="nothing can be set here"):
                await client.set(update=[(enabled(1, "switch1"), False)], prefix=GNMIPath(target="switch1"))

    run(test())


def test_a_port_may_have_the_name_that_its_fabric_file_gives_it() -> None:
    fabric = FabricSpecification.model_validate(
        {
            "kind": "fabric",
            "hosts": [
                {"name": host, "nics": [{"name": "eth0", "address": f"10.0.0.{number}/24"}]}
                for number, host in enumerate(("h0", "h1"), 1)
            ],
            "switches": [{"name": "leaf", "ports": [{"name": "swp7", "number": 1}, {"name": "swp8", "number": 2}]}],
            "cables": [{"ends": ["h0:eth0", "leaf:swp7"], "gbps": 1}, {"ends": ["h1:eth0", "leaf:swp8"], "gbps": 1}],
        }
    )

    async def test() -> None:
        async with served_fabric(fabric) as served, GNMIClient(served.address) as client:
            await client.set(update=[(GNMIPath("interfaces/interface[name=swp8]/config/enabled"), False)])
            assert up_ports(served, "leaf") == {1}
            with pytest.raises(GNMIClientError, match="switch leaf has no interface swp9"):
                await client.set(update=[(GNMIPath("interfaces/interface[name=swp9]/config/enabled"), False)])

    run(test())
