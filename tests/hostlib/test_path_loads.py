"""How loaded paths are: who asks is never stuck or failed by the answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.types import Nic, NicPair, PathLoad
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.hostlib.answering import answering
from tests.hostlib.served import served
from tests.patience import PATIENCE_S

_NOBODY = "127.0.0.1:1"
_PAIR = NicPair(Nic("h0"), Nic("h2"))
_IDLE = PathLoad(0.0, 100e9)


def _run(scenario: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_who_has_no_job_learns_how_loaded_paths_are() -> None:
    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            assert await client.path_loads([_PAIR], PATIENCE_S) == (_IDLE,)
            assert controller.registry.jobs == ()

            def ask() -> tuple[PathLoad, ...] | None:
                with BlockingClient(controller.address) as blocking:
                    return blocking.path_loads([_PAIR, _PAIR], PATIENCE_S)

            assert await asyncio.to_thread(ask) == (_IDLE, _IDLE)

    _run(scenario)


def test_the_next_controller_answers_where_the_one_before_is_gone() -> None:
    async def scenario() -> None:
        async with served() as leader, Client([_NOBODY, leader.address]) as client:
            assert await client.path_loads([_PAIR], PATIENCE_S) == (_IDLE,)

    _run(scenario)


def test_without_a_controller_nothing_is_known() -> None:
    async def scenario() -> None:
        async with Client(_NOBODY) as client:
            assert await client.path_loads([_PAIR], timeout_s=0.2) is None

    _run(scenario)
    with BlockingClient(_NOBODY) as blocking:
        assert blocking.path_loads([_PAIR], timeout_s=0.2) is None


def test_a_controller_that_is_too_old_for_the_call_refuses_it_by_name() -> None:
    async def scenario() -> None:
        async with (
            answering(methods.GET_PATH_LOADS, None) as address,
            Client(address) as client,
            Connection(address) as connection,
        ):
            for asking in (client.path_loads([_PAIR], PATIENCE_S), connection.path_loads([_PAIR])):
                with pytest.raises(RefusedError, match="GetPathLoads: the controller does not know this call") as error:
                    await asking
                assert error.value.reason is RefusalReason.UNSUPPORTED

    _run(scenario)


def test_a_host_that_the_fabric_lacks_is_refused_by_name() -> None:
    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            with pytest.raises(RefusedError, match=r"pairs\[1\].destination.host: unknown host 'h9'") as refusal:
                await client.path_loads([_PAIR, NicPair(Nic("h0"), Nic("h9"))], PATIENCE_S)
            assert refusal.value.reason is RefusalReason.INVALID

    _run(scenario)


@pytest.mark.parametrize(
    ("loads", "problem"),
    [
        ([], "loads: the controller answered 0 for 1 pairs"),
        ([wire.PathLoad()] * 2, "loads: the controller answered 2 for 1 pairs"),
        ([wire.PathLoad(load=float("nan"))], "load: expected a number"),
        ([wire.PathLoad(load=0.5, free_bps=-1.0)], "free_bps: expected a number"),
    ],
)
def test_an_answer_that_nobody_can_read_is_a_failure_of_the_library(loads: list[wire.PathLoad], problem: str) -> None:
    async def scenario() -> None:
        async with (
            answering(methods.GET_PATH_LOADS, wire.GetPathLoadsResponse(loads=loads)) as address,
            Client(address) as client,
        ):
            with pytest.raises(RefusedError, match=problem) as refusal:
                await client.path_loads([_PAIR], PATIENCE_S)
            assert refusal.value.reason is RefusalReason.FAILED

    _run(scenario)


@pytest.mark.parametrize(
    ("pairs", "timeout_s", "field"),
    [
        ([("h0", "h2")], 1.0, r"pairs\[0\]: expected a NicPair"),
        (_PAIR, 1.0, "pairs: expected a tuple"),
        ([_PAIR], -1.0, "timeout_s"),
    ],
)
def test_what_nobody_could_answer_is_refused_at_once(pairs: Any, timeout_s: float, field: str) -> None:
    with BlockingClient(_NOBODY) as blocking, pytest.raises(ValueError, match=field):
        blocking.path_loads(pairs, timeout_s)


def test_a_pair_is_of_two_hosts() -> None:
    with pytest.raises(ValueError, match="destination: expected another host than the source's, got 'h0'"):
        NicPair(Nic("h0"), Nic("h0", 1))
