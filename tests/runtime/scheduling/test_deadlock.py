"""Gangs never wait for each other in a ring, whatever the policy, and whoever dies."""

import random
from collections.abc import Callable

import pytest

from runtime.scheduling.cluster import ClusterScheduler
from runtime.scheduling.earliest_need import EarliestNeed
from runtime.scheduling.fifo import Fifo
from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.policy import Policy
from runtime.scheduling.scheduler import IslandScheduler
from runtime.scheduling.shares import ProportionalShare
from tests.runtime.scheduling.simulated_devices import SimulatedDevices

NUM_MIXES, NUM_PARTS = 10_000, 5
DEVICES_PER_ISLAND = 6
POLICIES: list[Callable[[], Policy]] = [Fifo, EarliestNeed, lambda: ProportionalShare({"c0": 4.0, "c1": 0.5})]


def draw_requests(chance: random.Random, num_islands: int) -> list[tuple[str, GangRequest]]:
    """Draw gangs of several clients over islands; each takes results of some earlier ones, anywhere."""
    requests: list[tuple[str, GangRequest]] = []
    for number in range(chance.randint(2, 24)):
        island = chance.randrange(num_islands)
        first = island * DEVICES_PER_ISLAND
        devices = frozenset(chance.sample(range(first, first + DEVICES_PER_ISLAND), chance.randint(1, 4)))
        after = tuple(chance.sample(range(number), min(number, chance.choice([0, 0, 1, 2]))))
        need_s = chance.choice([None, chance.uniform(-1, 1)])
        client = f"c{chance.randrange(3)}"
        cost_s = chance.choice([1e-4, 1e-3, 5e-3])
        requests.append((f"i{island}", GangRequest(number, client, devices, cost_s, need_s, after)))
    return requests


def run_mix(seed: int) -> None:
    """Submit, grant, run and kill in a random order until everything has ended."""
    chance = random.Random(seed)
    num_islands = chance.randint(1, 3)
    scheduler = ClusterScheduler(chance.choice(POLICIES), look_ahead_s=chance.choice([1e-4, 2e-3, 1.0]))
    for island in range(num_islands):
        scheduler.add_island(f"i{island}")
    requests = draw_requests(chance, num_islands)
    by_number = {request.number: (island, request) for island, request in requests}
    kills = {chance.randrange(len(requests)): f"c{chance.randrange(3)}" for _ in range(chance.choice([0, 0, 1, 2]))}
    devices = SimulatedDevices()
    granted: list[int] = []
    dropped: set[int] = set()
    orders: dict[str, list[int]] = {}
    now_s = 0.0

    def grant() -> None:
        for island, grant in scheduler.grants(now_s):
            granted.append(grant.number)
            orders.setdefault(island, []).append(grant.order)
            devices.enqueue(by_number[grant.number][1])

    def end_one() -> None:
        runnable = devices.runnable()
        assert runnable or not devices.num_unfinished, f"seed {seed}: nothing can run"
        if runnable:
            number = chance.choice(runnable)
            devices.end(number)
            scheduler[by_number[number][0]].completed(number, now_s)

    for island, request in requests:
        if not dropped.isdisjoint(request.after):
            dropped.add(request.number)
        else:
            scheduler[island].submit(request)
        if request.number in kills:
            dropped.update(scheduler.withdraw(kills[request.number]))
            devices.abort(n for n in granted if by_number[n][1].client == kills[request.number])
        for _ in range(chance.randint(0, 2)):
            grant()
            end_one()
            now_s += chance.uniform(0, 0.002)
    grant()
    while devices.num_unfinished:
        end_one()
        now_s += chance.uniform(0, 0.002)
        grant()
    assert sorted([*devices.ran, *dropped]) == list(range(len(requests))), f"seed {seed}"
    assert all(order == list(range(len(order))) for order in orders.values())
    position = {number: at for at, number in enumerate(granted)}
    for number in granted:
        assert all(position[earlier] < position[number] for earlier in by_number[number][1].after)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_random_gang_mixes_end_without_deadlock(part: int) -> None:
    for seed in range(part * NUM_MIXES // NUM_PARTS, (part + 1) * NUM_MIXES // NUM_PARTS):
        run_mix(seed)


def ring(are_inputs_known: bool) -> SimulatedDevices:
    """Return devices that were granted two programs, each with an urgent gang that takes the result of a slow one."""
    requests = [
        GangRequest(0, "x", frozenset({0}), 1.0),
        GangRequest(1, "x", frozenset({1}), 1.0, need_s=0.0, after=(0,)),
        GangRequest(2, "y", frozenset({1}), 1.0),
        GangRequest(3, "y", frozenset({0}), 1.0, need_s=0.0, after=(2,)),
    ]
    scheduler = IslandScheduler(EarliestNeed(), look_ahead_s=10.0)
    devices = SimulatedDevices()
    for request in requests:
        known = (
            request
            if are_inputs_known
            else GangRequest(request.number, request.client, request.devices, request.cost_s, request.need_s)
        )
        scheduler.submit(known)
    for grant in scheduler.grants(0.0):
        devices.enqueue(requests[grant.number])
    return devices


def test_gangs_that_take_results_are_granted_after_what_they_take() -> None:
    assert not ring(are_inputs_known=False).runnable()  # what would happen otherwise
    devices = ring(are_inputs_known=True)
    while devices.num_unfinished:
        devices.end(devices.runnable()[0])
    assert sorted(devices.ran) == [0, 1, 2, 3]


def test_order_differing_between_devices_would_deadlock() -> None:
    devices = SimulatedDevices()
    devices.enqueue(GangRequest(0, "x", range(2), 1.0))
    devices.enqueue(GangRequest(1, "y", range(2), 1.0))
    devices.queues[1].reverse()
    assert not devices.runnable()
