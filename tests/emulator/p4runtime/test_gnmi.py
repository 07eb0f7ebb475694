"""gNMI: the ports of a switch, by finsy's own client and by a whole finsy controller."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
import pytest
from finsy.gnmiclient import GNMIClient, GNMIClientError, GNMISubscription
from finsy.gnmipath import GNMIPath
from finsy.grpcutil import GRPCStatusCode, grpc_channel
from finsy.proto import gnmi, gnmi_grpc

from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.server import serve_each
from emulator.p4runtime.service import P4RuntimeService
from tests.emulator.p4runtime.clients import run, serving
from tests.emulator.p4runtime.fake_switch import PORTS, FakeSwitch
from tests.patience import PATIENCE_S

IF_INDEX = GNMIPath("interfaces/interface[name=*]/state/ifindex")
OPER_STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
FIRST, SECOND = (GNMIPath(target=f"switch{number}") for number in (1, 2))


@asynccontextmanager
async def alone(pipeline: Pipeline) -> AsyncIterator[tuple[dict[str, FakeSwitch], dict[str, str]]]:
    """Two switches by name, each on an address of its own."""
    switches = {f"switch{number}": FakeSwitch(number) for number in (1, 2)}
    async with serve_each(P4RuntimeService(switches.values(), pipeline, asyncio.Lock())) as ports:
        yield switches, {name: f"127.0.0.1:{port}" for name, port in ports.items()}


async def states(subscription: GNMISubscription) -> dict[str, str]:
    """What a subscription starts with, by interface."""
    return {update.path["name"]: update.value async for update in subscription.synchronize()}


async def refused(client: GNMIClient, path: GNMIPath, code: GRPCStatusCode, prefix: GNMIPath | None = None) -> None:
    with pytest.raises(GNMIClientError) as error:
        await client.get(path, prefix=prefix)
    assert error.value.code is code


def test_get_reads_the_leaves_below_a_path(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with alone(pipeline) as (switches, addresses), GNMIClient(addresses["switch2"]) as client:
            found = await client.get(IF_INDEX)
            assert {update.path["name"]: update.value for update in found} == {
                f"switch2-eth{port}": port for port in PORTS
            }
            switches["switch2"].set_port(3, False)
            found = await client.get(GNMIPath("interfaces/interface[name=switch2-eth3]"))
            assert {(update.path[2], update.path.last): update.value for update in found} == {
                ("state", "name"): "switch2-eth3",
                ("state", "ifindex"): 3,
                ("state", "enabled"): True,
                ("state", "admin-status"): "UP",
                ("state", "oper-status"): "DOWN",
                ("config", "enabled"): True,
            }
            await refused(client, GNMIPath("interfaces/interface[name=eth9]"), GRPCStatusCode.NOT_FOUND)
            await refused(client, GNMIPath("components"), GRPCStatusCode.NOT_FOUND)
            await refused(client, IF_INDEX, GRPCStatusCode.NOT_FOUND, prefix=FIRST)
            assert (await client.capabilities()).gNMI_version

    run(test())


def test_beside_other_switches_the_target_says_which(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, GNMIClient(served.address) as client:
            await refused(client, IF_INDEX, GRPCStatusCode.UNIMPLEMENTED)
            served.switches[2].set_port(1, False)
            for prefix, expected in ((FIRST, "UP"), (SECOND, "DOWN")):
                (update, *_) = await client.get(OPER_STATUS, prefix=prefix)
                assert update.value == expected

    run(test())


def test_a_subscription_tells_what_changes_to_it_and_nothing_else(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, GNMIClient(served.address) as client:
            switch = served.switches[1]
            subscription = client.subscribe(prefix=FIRST)
            subscription.on_change(*(OPER_STATUS.set(name=f"switch1-eth{port}") for port in (1, 2)))
            assert await states(subscription) == {"switch1-eth1": "UP", "switch1-eth2": "UP"}
            switch.set_port(3, False)
            switch.set_port(1, True)
            served.switches[2].set_port(1, False)
            await asyncio.to_thread(switch.set_port, 2, False)
            async for update in subscription.updates():
                assert (update.path["name"], update.path.last, update.value) == ("switch1-eth2", "oper-status", "DOWN")
                break
            subscription.cancel()

    run(test())


def test_once_ends_after_all_is_told(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, GNMIClient(served.address) as client:
            subscription = client.subscribe(prefix=SECOND)
            subscription.once(OPER_STATUS)
            assert await states(subscription) == {f"switch2-eth{port}": "UP" for port in PORTS}

    run(test())


def request(mode: gnmi.SubscriptionList.Mode.ValueType, *, updates_only: bool = False) -> gnmi.SubscribeRequest:
    return gnmi.SubscribeRequest(
        subscribe=gnmi.SubscriptionList(
            prefix=FIRST.path,
            mode=mode,
            subscription=[gnmi.Subscription(path=OPER_STATUS.path)],
            updates_only=updates_only,
        )
    )


async def answer(stream: grpc.aio.StreamStreamCall[Any, Any]) -> gnmi.SubscribeResponse:
    response = await stream.read()
    assert isinstance(response, gnmi.SubscribeResponse)
    return response


def test_updates_only_leaves_out_what_there_is(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc_channel(served.address) as channel:
            stream = gnmi_grpc.gNMIStub(channel).Subscribe()
            await stream.write(request(gnmi.SubscriptionList.STREAM, updates_only=True))
            assert (await answer(stream)).sync_response
            served.switches[1].set_port(2, False)
            (update,) = (await answer(stream)).update.update
            assert (update.path.elem[1].key["name"], update.val.string_val) == ("switch1-eth2", "DOWN")
            stream.cancel()

    run(test())


def test_polls_are_answered_one_by_one(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc_channel(served.address) as channel:
            stream = gnmi_grpc.gNMIStub(channel).Subscribe()
            await stream.write(request(gnmi.SubscriptionList.POLL))
            for expected in ("UP", "DOWN"):
                told = await answer(stream)
                assert told.update.prefix.target == "switch1"
                assert [update.val.string_val for update in told.update.update] == [expected, "UP", "UP"]
                assert (await answer(stream)).sync_response
                served.switches[1].set_port(1, False)
                await stream.write(gnmi.SubscribeRequest(poll=gnmi.Poll()))
            stream.cancel()

    run(test())


def test_what_is_not_supported_is_refused_by_name(pipeline: Pipeline) -> None:
    sampled = request(gnmi.SubscriptionList.STREAM)
    sampled.subscribe.subscription[0].mode = gnmi.SubscriptionMode.SAMPLE
    in_bytes = request(gnmi.SubscriptionList.ONCE)
    in_bytes.subscribe.encoding = gnmi.Encoding.BYTES
    cases = (
        (sampled, GRPCStatusCode.UNIMPLEMENTED, "samples"),
        (in_bytes, GRPCStatusCode.UNIMPLEMENTED, "encoding"),
        (gnmi.SubscribeRequest(poll=gnmi.Poll()), GRPCStatusCode.INVALID_ARGUMENT, "first request"),
    )

    async def test() -> None:
        async with serving(pipeline) as served, grpc_channel(served.address) as channel:
            for message, code, named in cases:
                stream = gnmi_grpc.gNMIStub(channel).Subscribe()
                await stream.write(message)
                assert GRPCStatusCode.from_status_code(await stream.code()) is code
                assert named in await stream.details()

    run(test())


def test_a_finsy_controller_learns_the_states_of_ports(
    pipeline: Pipeline, p4info_path: Path, device_config_path: Path
) -> None:
    async def test() -> None:
        async with alone(pipeline) as (switches, addresses):
            switches["switch2"].set_port(1, False)
            options = fy.SwitchOptions(p4info=p4info_path, p4blob=device_config_path, device_id=2)
            async with fy.Switch("under test", addresses["switch2"], options) as controlled:
                assert {port.id: port.up for port in controlled.ports} == {1: False, 2: True, 3: True}
                switches["switch2"].set_port(3, False)
                while controlled.ports["switch2-eth3"].up:
                    await asyncio.sleep(0.01)

    run(test())


def test_subscriptions_end_with_the_server_and_without_an_error_of_grpc(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the emulator gets SIGTERM: the event loop ends as soon as the server has."""
    ended: list[grpc.RpcError] = []

    def subscribe(address: str, has_begun: threading.Event) -> None:
        with grpc.insecure_channel(address) as channel:
            wanted = gnmi.SubscriptionList(subscription=[gnmi.Subscription(path=OPER_STATUS.path)])
            requests = iter([gnmi.SubscribeRequest(subscribe=wanted)])
            try:
                for response in gnmi_grpc.gNMIStub(channel).Subscribe(requests):
                    if response.sync_response:
                        has_begun.set()
            except grpc.RpcError as error:
                ended.append(error)

    async def serve_until_all_have_subscribed(clients: ThreadPoolExecutor) -> None:
        async with alone(pipeline) as (_, addresses):
            for address in addresses.values():
                has_begun = threading.Event()
                clients.submit(subscribe, address, has_begun)
                assert await asyncio.to_thread(has_begun.wait, PATIENCE_S)

    with ThreadPoolExecutor() as clients:
        asyncio.run(serve_until_all_have_subscribed(clients))
    assert [error.code() for error in ended] == [grpc.StatusCode.UNAVAILABLE] * 2
    assert "not handled" not in caplog.text
