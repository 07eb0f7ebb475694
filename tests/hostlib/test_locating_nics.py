"""Which NIC has an address: a job asks, and is never stuck or failed by the answer."""

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Any

import pytest

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.types import Nic
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.hostlib.answering import answering
from tests.hostlib.served import Served, served
from tests.patience import PATIENCE_S
from tests.ports import free_port

_NOBODY = "127.0.0.1:1"
_ADDRESS = IPv4Address("10.0.0.1")


def _run(scenario: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def _addresses(controller: Served, *hosts: str) -> list[IPv4Address]:
    return [IPv4Address(controller.routing.fabric.nics[host][0].address) for host in hosts]


def test_a_job_that_is_not_registered_learns_which_nics_its_addresses_are() -> None:
    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            addresses = [*_addresses(controller, "h2", "h0"), IPv4Address("192.0.2.1")]
            assert await client.locate_nics(addresses, PATIENCE_S) == (Nic("h2"), Nic("h0"), None)
            assert controller.registry.jobs == ()

            def ask() -> tuple[Nic | None, ...] | None:
                with BlockingClient(controller.address) as blocking:
                    return blocking.locate_nics(addresses, PATIENCE_S)

            assert await asyncio.to_thread(ask) == (Nic("h2"), Nic("h0"), None)

    _run(scenario)


def test_a_controller_that_comes_in_time_answers() -> None:
    async def scenario() -> None:
        async with served(f"127.0.0.1:{free_port()}") as gone:
            address, addresses = gone.address, _addresses(gone, "h1")
        async with Client(address) as client:
            asking = asyncio.create_task(client.locate_nics(addresses, PATIENCE_S))
            await asyncio.sleep(0.1)
            assert not asking.done()
            async with served(address):
                assert await asking == (Nic("h1"),)

    _run(scenario)


def test_without_a_controller_nothing_is_known() -> None:
    async def scenario() -> None:
        async with Client(_NOBODY) as client:
            assert await client.locate_nics([_ADDRESS], timeout_s=0.2) is None

    _run(scenario)
    with BlockingClient(_NOBODY) as blocking:
        assert blocking.locate_nics([_ADDRESS], timeout_s=0.2) is None
    assert blocking.locate_nics([_ADDRESS], timeout_s=PATIENCE_S) is None


def test_a_controller_that_is_too_old_for_the_call_refuses_it_by_name() -> None:
    async def scenario() -> None:
        async with (
            answering(methods.LOCATE_NICS, None) as address,
            Client(address) as client,
            Connection(address) as connection,
        ):

            def ask() -> tuple[Nic | None, ...] | None:
                with BlockingClient(address) as blocking:
                    return blocking.locate_nics([_ADDRESS], PATIENCE_S)

            for asking in (
                client.locate_nics([_ADDRESS], PATIENCE_S),
                connection.locate_nics([_ADDRESS]),
                asyncio.to_thread(ask),
            ):
                with pytest.raises(RefusedError, match="LocateNics: the controller does not know this call") as refusal:
                    await asking
                assert refusal.value.reason is RefusalReason.UNSUPPORTED

    _run(scenario)


@pytest.mark.parametrize(
    ("locations", "problem"),
    [
        ([], "locations: the controller answered 0 for 1 addresses"),
        ([wire.NicLocation()] * 2, "locations: the controller answered 2 for 1 addresses"),
        ([wire.NicLocation(nic=wire.Nic(host=""))], "host: expected 1 to 256 printable characters"),
    ],
)
def test_an_answer_that_nobody_can_read_is_a_failure_of_the_library(
    locations: list[wire.NicLocation], problem: str
) -> None:
    async def scenario() -> None:
        async with (
            answering(methods.LOCATE_NICS, wire.LocateNicsResponse(locations=locations)) as address,
            Client(address) as client,
        ):
            with pytest.raises(RefusedError, match=problem) as refusal:
                await client.locate_nics([_ADDRESS], PATIENCE_S)
            assert refusal.value.reason is RefusalReason.FAILED

    _run(scenario)


@pytest.mark.parametrize(
    ("addresses", "timeout_s", "field"),
    [
        (["10.0.0.1"], 1.0, r"addresses\[0\]: expected an IPv4Address, got '10.0.0.1'"),
        (_ADDRESS, 1.0, "addresses: expected a tuple"),
        ([_ADDRESS], -1.0, "timeout_s"),
    ],
)
def test_what_nobody_could_answer_is_refused_at_once(addresses: Any, timeout_s: float, field: str) -> None:
    with BlockingClient(_NOBODY) as blocking, pytest.raises(ValueError, match=field):
        blocking.locate_nics(addresses, timeout_s)
