"""What a server asks a real controller of the network between its islands, and what it makes of the answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest

from controller.clock import WallClock
from hostlib import Client, Flow, FlowGroup, Job, Nic, NicPair, PathLoad, Profile
from hostlib.connection import Connection
from runtime.resources.path_loads import PathLoads
from runtime.server import path_loads
from runtime.server.hosts import Host
from runtime.server.path_loads import PathLoadQueries, between, questions
from runtime.substrates.interface import NetworkHost
from tests.hostlib.served import served
from tests.patience import PATIENCE_S, until


def hosts_of(**names_by_island: str) -> dict[int, Host]:
    """Hosts of islands by number; those whose name is ``-`` are on no network."""
    nowhere: Any = None
    numbers = count()
    return {
        number: Host(number, island, nowhere, nowhere, None if name == "-" else NetworkHost(name, "10.0.0.1"))
        for island, names in names_by_island.items()
        for name in names.split()
        for number in [next(numbers)]
    }


def named(asked: path_loads.Questions) -> list[tuple[str, str, str]]:
    """Questions by the islands and the hosts that they are about."""
    return [("".join(sorted(islands)), pair.source.host, pair.destination.host) for islands, pair in asked]


def test_each_host_of_two_islands_is_asked_for_with_one_of_the_other_there_and_back() -> None:
    assert named(questions(hosts_of(a="h0", b="h1 h2").values())) == [
        ("ab", "h0", "h1"),
        ("ab", "h1", "h0"),
        ("ab", "h0", "h2"),
        ("ab", "h2", "h0"),
    ]


def test_nobody_asks_for_one_island_nor_for_hosts_that_are_elsewhere_leave_or_are_the_same() -> None:
    assert not questions(hosts_of(a="h0 h1").values())
    hosts = hosts_of(a="h0", b="- h1", c="h0")
    hosts[2].is_leaving = True
    assert not questions(hosts.values())


def test_many_hosts_are_asked_for_in_one_call_and_very_many_islands_not_at_all() -> None:
    many = hosts_of(**{f"island{island}": " ".join(f"h{island}-{host}" for host in range(64)) for island in range(8)})
    asked = questions(many.values())
    assert 512 < len(asked) <= 1024
    assert len({islands for islands, _ in asked}) == 28
    assert not questions(hosts_of(**{f"island{island}": f"h{island}" for island in range(40)}).values())


def test_what_is_known_of_two_islands_is_a_mean_to_a_tenth_over_the_pairs_that_have_a_path() -> None:
    pairs = [(frozenset(islands), NicPair(Nic("h0"), Nic("h1"))) for islands in ("ab", "ab", "ac", "ac", "bc", "cd")]
    found = [PathLoad(load, 0.0) for load in (0.31, 0.6, 0.3, None, 0.04, None)]
    known = {frozenset("ab"): 0.5, frozenset("ac"): 0.3, frozenset("bc"): 0.0, frozenset("cd"): inf}
    assert between(pairs, found).between == known


@dataclass
class World:
    """Queries of a server with three islands, on hosts h0, h2 and h1 of the controller's fabric."""

    address: str
    hosts: dict[int, Host] = field(default_factory=lambda: hosts_of(a="h0", b="h2", c="h1"))
    told: list[PathLoads] = field(default_factory=list)

    def newest(self) -> dict[str, float]:
        return {"".join(sorted(islands)): load for islands, load in self.told[-1].between.items()} if self.told else {}


def run(scenario: Callable[[World], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(path_loads, "_ASKS_EVERY_S", 0.1)

    async def asking() -> None:
        world = World(address)
        async with Client(address) as client:
            queries = PathLoadQueries(client, world.hosts, world.told.append)
            queries.open()
            try:
                await scenario(world)
            finally:
                queries.close()

    asyncio.run(asyncio.wait_for(asking(), PATIENCE_S))


HALF_BYTES = 6_250_000_000
"""What a cable of the fabric carries in half a second."""
IDLE = {"ab": 0.0, "ac": 0.0, "bc": 0.0}


async def register(connection: Connection) -> None:
    """Register a job that needs half of the cables of h2."""
    pairs = (Nic("h2"), Nic("h3")), (Nic("h3"), Nic("h2"))
    await connection.register_job(Job("big", ("h2", "h3"), 16, Profile(compute_s=1.0, comm_start=0.0, work=16.0)))
    flows = tuple(Flow(source, destination, HALF_BYTES) for source, destination in pairs)
    await connection.register_flow_groups("big", [FlowGroup("ring", flows)])


def test_loads_are_known_as_long_as_a_controller_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/controller"

    async def scenario(world: World) -> None:
        await until(lambda: bool(world.told))
        assert world.newest() == {}
        async with served(address, clock=WallClock()):
            await until(lambda: world.newest() == IDLE)
            async with Connection(address) as connection:
                await register(connection)
                await until(lambda: world.newest() == {"ab": 0.5, "ac": 0.0, "bc": 0.5})
        await until(lambda: world.newest() == {})
        async with served(address, clock=WallClock()):
            await until(lambda: world.newest() == IDLE)

    run(scenario, monkeypatch, address)


def test_a_host_that_the_network_lacks_is_said_once_and_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/controller"

    async def scenario(world: World) -> None:
        async with served(address, clock=WallClock()):
            await until(lambda: world.newest() == IDLE)
            world.hosts |= hosts_of(a="h0", b="h2", d="h9")
            await until(lambda: world.newest() == {})
            asked = len(world.told)
            await until(lambda: len(world.told) > asked + 2)
            del world.hosts[2]
            await until(lambda: set(world.newest()) == {"ab"})

    with caplog.at_level(logging.WARNING, "runtime"):
        run(scenario, monkeypatch, address)
    assert [record.message for record in caplog.records] == [
        "slices are placed without regard to the network: pairs[2].destination.host: unknown host 'h9'"
    ]


def test_whatever_fails_is_logged_and_the_server_asks_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/controller"

    def fails(*_: object) -> None:
        raise KeyError("a mistake")

    async def scenario(world: World) -> None:
        async with served(address, clock=WallClock()):
            await until(lambda: world.newest() == IDLE)
            with monkeypatch.context() as broken:
                broken.setattr(path_loads, "between", fails)
                await until(lambda: world.newest() == {})
            await until(lambda: world.newest() == IDLE)

    run(scenario, monkeypatch, address)
    assert "the loads of the network are not known until the next answer" in caplog.messages
