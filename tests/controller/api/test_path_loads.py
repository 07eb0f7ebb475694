"""How loaded paths are: as measured, or else as planned; along the best of the paths that are left."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

import controller.api.rate_limiter as flood_gate
from controller.api.rate_limiter import BYTES_PER_UNIT
from controller.telemetry.link_measurements import WindowLoads
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.messages import MAX_PAIRS_PER_CALL, path_loads_to_wire
from hostlib.types import Nic, NicPair, PathLoad
from hostlib.wire import methods
from tests.driven import DrivenConnection
from tests.hostlib.served import GPT, RING, Served, served
from tests.patience import PATIENCE_S
from topologies.routing import Routing

RATE_BPS = 100e9
SHARE = 0.08
"""Of its cables that the job ``GPT`` uses: 10^9 bytes each way in an iteration of a second."""
IDLE = PathLoad(0.0, RATE_BPS)


def pair(source: str, destination: str) -> NicPair:
    return NicPair(Nic(source), Nic(destination))


def run(scenario: Callable[[Served, DrivenConnection], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with served(plans_by_itself=False) as controller, DrivenConnection(controller.address) as client:
            await scenario(controller, client)

    asyncio.run(asyncio.wait_for(connected(), PATIENCE_S))


async def planned(client: DrivenConnection) -> None:
    """Have a job between h0 and h2 planned."""
    await client.register_job(GPT)
    await client.register_flow_groups("gpt", [RING])
    await client.settle(0.0)


def measure(controller: Served, link: int, share: float) -> None:
    """Have a host report a link often enough, up to time 0."""
    for time_s in np.arange(-12, 1) / 4:
        load = WindowLoads(np.array([link]), np.array([time_s]), np.array([share * RATE_BPS]))
        controller.telemetry.foreign_loads.record(load, "h3")


def assert_loads(found: tuple[PathLoad, ...], *shares: float) -> None:
    assert [each.load for each in found] == pytest.approx(list(shares))
    assert [each.free_bps for each in found] == pytest.approx([(1 - share) * RATE_BPS for share in shares])


def test_without_jobs_and_probes_paths_are_idle() -> None:
    async def scenario(_: Served, client: DrivenConnection) -> None:
        assert await client.path_loads([]) == ()
        assert await client.path_loads([pair("h0", "h2"), pair("h0", "h1")]) == (IDLE, IDLE)

    run(scenario)


def test_what_is_planned_counts_on_the_best_path_in_the_order_of_the_question() -> None:
    async def scenario(_: Served, client: DrivenConnection) -> None:
        await planned(client)
        asked = [pair("h1", "h3"), pair("h0", "h3"), pair("h3", "h0"), pair("h1", "h2")]
        assert_loads(await client.path_loads(asked), 0.0, SHARE, SHARE, SHARE)
        await client.deregister("gpt")
        await client.settle(0.0)
        assert_loads(await client.path_loads(asked), 0.0, 0.0, 0.0, 0.0)

    run(scenario)


def test_what_is_measured_counts_instead_of_what_is_planned() -> None:
    async def scenario(controller: Served, client: DrivenConnection) -> None:
        await planned(client)
        fabric = controller.routing.fabric
        measure(controller, fabric.reverse(fabric.nics["h3"][0].link), 0.6)
        measure(controller, fabric.reverse(fabric.nics["h2"][0].link), 0.01)
        asked = [pair("h1", "h3"), pair("h1", "h2"), pair("h0", "h2")]
        assert_loads(await client.path_loads(asked), 0.6, 0.01, SHARE)
        await client.settle(6.0)
        assert_loads(await client.path_loads(asked), 0.0, SHARE, SHARE)

    run(scenario)


def test_a_path_is_as_loaded_as_its_busiest_link_and_the_best_path_counts() -> None:
    async def scenario(controller: Served, client: DrivenConnection) -> None:
        fabric = controller.routing.fabric
        source, destination = (fabric.nics[host][0] for host in ("h1", "h3"))
        first, *others = controller.routing.candidate_paths(source, destination)
        for link in {link for path in others for link in path} - set(first):
            measure(controller, link, 0.9)
        measure(controller, first[1], 0.2)
        assert_loads(await client.path_loads([pair("h1", "h3")]), 0.2)
        measure(controller, first[2], 0.5)
        assert_loads(await client.path_loads([pair("h1", "h3")]), 0.5)

    run(scenario)


def test_no_load_is_known_where_dead_links_left_no_path() -> None:
    async def scenario(controller: Served, client: DrivenConnection) -> None:
        fabric = controller.routing.fabric
        last = fabric.links[fabric.reverse(fabric.nics["h3"][0].link)]
        controller.planner.links.set_port_states({last.source: {last.source_port: False}}, 0.0)
        controller.planner.mark_changed()
        await controller.planner.settle()
        assert await client.path_loads([pair("h1", "h3"), pair("h1", "h2")]) == (PathLoad(None, 0.0), IDLE)

    run(scenario)


def test_paths_of_different_lengths_count_alike() -> None:
    """Switches that are not ours, and drained ones, may leave such."""

    async def scenario(controller: Served, client: DrivenConnection) -> None:
        fabric = controller.routing.fabric
        first, second, *_ = controller.routing.candidate_paths(fabric.nics["h1"][0], fabric.nics["h3"][0])
        longer = [(*first[:-1], first[1], first[2], first[-1]), second, (*second, second[1])]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Routing, "candidate_paths", lambda *_: tuple(longer))
            for link in set(first) - set(second):
                measure(controller, link, 0.7)
            measure(controller, second[1], 0.3)
            assert_loads(await client.path_loads([pair("h1", "h3")]), 0.3)

    run(scenario)


def test_more_pairs_than_a_call_has_room_for_are_asked_in_several() -> None:
    async def scenario(_: Served, client: DrivenConnection) -> None:
        await planned(client)
        found = await client.path_loads([pair("h0", "h2"), pair("h1", "h3"), pair("h1", "h0")] * MAX_PAIRS_PER_CALL)
        assert_loads(found[:3], SHARE, 0.0, SHARE)
        assert found == found[:3] * MAX_PAIRS_PER_CALL

    run(scenario)


def test_the_answer_and_its_paths_count_for_the_rate_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    # However long it takes, nothing to speak of comes back meanwhile.
    monkeypatch.setattr(flood_gate, "UNITS_PER_S", 0.001)

    async def scenario() -> None:
        async with served(plans_by_itself=False) as controller, Connection(controller.address) as client:
            request = path_loads_to_wire([pair("h0", "h2")] * MAX_PAIRS_PER_CALL)
            answer = await client._channel.call(methods.GET_PATH_LOADS, request, PATIENCE_S)
            units = 1 + (request.ByteSize() + answer.ByteSize()) / BYTES_PER_UNIT

            async def ask_often(times: int) -> None:
                for _ in range(times):
                    await client._channel.call(methods.GET_PATH_LOADS, request, PATIENCE_S)

            with pytest.raises(RefusedError) as refusal:
                await ask_often(int(flood_gate.BURST_UNITS / units))
            assert refusal.value.reason is RefusalReason.EXHAUSTED

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
