import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.scheduling.errors import SchedulingError
from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.scheduler import IslandScheduler
from runtime.scheduling.shares import ProportionalShare

QUANTA = 1_000
LOOK_AHEAD_S = 0.005


class Island:
    """An island whose clients always have gangs waiting. It runs what is granted, gang after gang.

    Attributes:
        used_s: By client, device-seconds for which its gangs ran.
    """

    def __init__(self, policy: ProportionalShare, look_ahead_s: float = LOOK_AHEAD_S) -> None:
        self.scheduler = IslandScheduler(policy, look_ahead_s)
        self.used_s: dict[str, float] = {}
        self.requests: dict[int, GangRequest] = {}
        self.runs_s: dict[int, float] = {}
        self._numbers = itertools.count()
        self._queue: list[int] = []
        self._now_s = 0.0

    def submit(
        self, client: str, devices: range, cost_s: float, run_s: float | None = None, need_s: float | None = None
    ) -> None:
        request = GangRequest(next(self._numbers), client, devices, cost_s, need_s)
        self.requests[request.number] = request
        self.runs_s[request.number] = cost_s if run_s is None else run_s
        self.scheduler.submit(request)

    def run_one(self) -> GangRequest:
        """Run the next granted gang alone, and return it."""
        self._queue += [grant.number for grant in self.scheduler.grants(self._now_s)]
        number = self._queue.pop(0)
        request = self.requests.pop(number)
        self._now_s += self.runs_s[number]
        self.used_s[request.client] = self.used_s.get(request.client, 0) + len(request.devices) * self.runs_s.pop(
            number
        )
        self.scheduler.completed(number, self._now_s)
        return request

    def shares(self) -> dict[str, float]:
        total_s = sum(self.used_s.values())
        return {client: used_s / total_s for client, used_s in self.used_s.items()}


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 4, 8)])
def test_clients_get_device_time_by_weight(weights: tuple[int, ...]) -> None:
    """Figure 9: ratios 1:1:1:1 and 1:2:4:8 between four clients."""
    clients = {f"c{weight}{at}": float(weight) for at, weight in enumerate(weights)}
    island = Island(ProportionalShare(clients))
    for client in clients:
        for _ in range(QUANTA):
            island.submit(client, range(64), 0.001)
    for _ in range(QUANTA):
        island.run_one()
    for client, weight in clients.items():
        assert island.shares()[client] == pytest.approx(weight / sum(weights), rel=0.02)


@given(st.sampled_from([(1, 1, 1, 1), (1, 2, 4, 8), (1, 7), (2, 3)]), st.randoms(use_true_random=False))
def test_shares_are_exact_to_a_quantum_however_late_completions_are_told(
    weights: tuple[int, ...], chance: random.Random
) -> None:
    """Devices run what they are granted without a gap, and say for how long; a busy server hears of it in batches."""
    quantum_s, window = 0.002, 300
    clients = {f"c{at}": float(weight) for at, weight in enumerate(weights)}
    scheduler = IslandScheduler(ProportionalShare(clients), 5 * quantum_s)
    numbers = itertools.count()
    client_of: dict[int, str] = {}
    ran: list[str] = []
    now_s = 0.0

    def submit(client: str) -> None:
        request = GangRequest(next(numbers), client, range(1), quantum_s)
        client_of[request.number] = client
        scheduler.submit(request)

    for client in clients:
        for _ in range(16):
            submit(client)
    while len(ran) < 3 * window:
        granted = [grant.number for grant in scheduler.grants(now_s)]
        ran += [client_of[number] for number in granted]
        now_s += len(granted) * quantum_s + chance.choice([0.0, 0.0, 0.008])
        for number in granted:
            scheduler.completed(number, now_s, quantum_s)
            submit(client_of[number])
    for begin in range(0, len(ran) - window, 10):
        for client, weight in clients.items():
            number = ran[begin : begin + window].count(client)
            assert abs(number - window * weight / sum(weights)) <= 1, client


def test_shares_hold_for_gangs_of_all_sizes() -> None:
    island = Island(ProportionalShare({"large": 3.0, "small": 1.0}))
    for _ in range(QUANTA):
        island.submit("large", range(64), 0.001)
        island.submit("small", range(16), 0.002)
    for _ in range(QUANTA):
        island.run_one()
    assert island.shares()["large"] == pytest.approx(0.75, rel=0.02)


def test_a_client_gains_nothing_by_estimates_that_are_too_small() -> None:
    island = Island(ProportionalShare(), look_ahead_s=0.004)
    for _ in range(QUANTA):
        island.submit("honest", range(8), 0.004)
        island.submit("liar", range(8), 0.001, run_s=0.004)
    for _ in range(QUANTA):
        island.run_one()
    assert island.shares()["liar"] == pytest.approx(0.5, rel=0.02)


def test_a_client_loses_nothing_by_estimates_that_are_too_large() -> None:
    island = Island(ProportionalShare())
    for _ in range(QUANTA):
        island.submit("exact", range(8), 0.001)
        island.submit("cautious", range(8), 0.003, run_s=0.001)
    for _ in range(QUANTA):
        island.run_one()
    assert island.shares()["cautious"] == pytest.approx(0.5, rel=0.02)


def test_a_client_saves_nothing_while_it_is_away() -> None:
    island = Island(ProportionalShare(), look_ahead_s=0.001)
    island.submit("away", range(4), 0.001)
    for _ in range(400):
        island.submit("here", range(4), 0.001)
    for _ in range(200):
        island.run_one()
    for _ in range(100):
        island.submit("away", range(4), 0.001)
    after_return = [island.run_one().client for _ in range(20)]
    assert 9 <= after_return.count("away") <= 11


def test_a_client_that_waits_for_results_keeps_its_share() -> None:
    """It submits the next gang only when the last one has completed, two at a time."""
    island = Island(ProportionalShare({"one": 1.0, "two": 2.0}), look_ahead_s=0.001)
    for _ in range(QUANTA):
        island.submit("one", range(4), 0.001)
    for _ in range(3):
        island.submit("two", range(4), 0.001)
    for _ in range(QUANTA):
        if island.run_one().client == "two":
            island.submit("two", range(4), 0.001)
    assert island.shares()["two"] == pytest.approx(2 / 3, rel=0.02)


def test_weights_may_change() -> None:
    policy = ProportionalShare()
    island = Island(policy, look_ahead_s=0.001)
    for client in ("a", "b"):
        for _ in range(QUANTA):
            island.submit(client, range(4), 0.001)
    for _ in range(100):
        island.run_one()
    assert island.shares()["a"] == pytest.approx(0.5, rel=0.02)
    policy.set_weight("a", 4.0)
    island.used_s.clear()
    for _ in range(500):
        island.run_one()
    assert island.shares()["a"] == pytest.approx(0.8, rel=0.02)


def test_gangs_of_one_client_go_by_slack() -> None:
    island = Island(ProportionalShare(), look_ahead_s=1e-6)
    for need_s in (None, 3.0, 1.0, 2.0):
        island.submit("c", range(4), 0.5, need_s=need_s)
    assert [island.run_one().need_s for _ in range(4)] == [1.0, 2.0, 3.0, None]


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0, 8.0]), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_lag_is_bounded_by_the_largest_gang(weights: list[float], chance: random.Random) -> None:
    """While all compete, virtual times never differ by more than the largest charge over a weight."""
    clients = {f"c{at}": weight for at, weight in enumerate(weights)}
    island = Island(ProportionalShare(clients), look_ahead_s=1e-9)
    largest_s = 0.0
    for client, weight in clients.items():
        for _ in range(10):
            count, cost_s = chance.randint(1, 8), chance.choice([0.001, 0.002, 0.005])
            island.submit(client, range(count), cost_s)
            largest_s = max(largest_s, count * cost_s / weight)
    waiting = dict.fromkeys(clients, 10)
    while min(waiting.values()) > 1:
        waiting[island.run_one().client] -= 1
        virtual_s = [island.used_s.get(client, 0) / weight for client, weight in clients.items()]
        assert max(virtual_s) - min(virtual_s) <= largest_s + 1e-9


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_weights_must_be_positive(weight: float) -> None:
    with pytest.raises(SchedulingError, match="greedy: weight"):
        ProportionalShare({"greedy": weight})
    with pytest.raises(SchedulingError, match="greedy: weight"):
        ProportionalShare().set_weight("greedy", weight)
    with pytest.raises(SchedulingError, match="other clients: weight"):
        ProportionalShare(default_weight=weight)
