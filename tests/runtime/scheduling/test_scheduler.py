from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.scheduling.cluster import ClusterScheduler
from runtime.scheduling.devices import LONGEST
from runtime.scheduling.earliest_need import EarliestNeed
from runtime.scheduling.errors import GangOrderError, InvalidGangError, SchedulingError, UnknownGangError
from runtime.scheduling.fifo import Fifo
from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.policy import Policy
from runtime.scheduling.scheduler import IslandScheduler
from runtime.scheduling.shares import ProportionalShare

LOOK_AHEAD_S = 0.002


def granted(scheduler: IslandScheduler, now_s: float = 0.0) -> list[int]:
    return [grant.number for grant in scheduler.grants(now_s)]


@dataclass
class SlowScheduler:
    """Considers all gangs in the order of their ranks until none can go: what the scheduler must amount to."""

    rank: Callable[[GangRequest], tuple[float, int]]
    waiting: list[GangRequest] = field(default_factory=list)
    outstanding: dict[int, GangRequest] = field(default_factory=dict)

    def grants(self) -> list[int]:
        found: list[int] = []
        while (request := self._next()) is not None:
            self.waiting.remove(request)
            self.outstanding[request.number] = request
            found.append(request.number)
        return found

    def _next(self) -> GangRequest | None:
        ungranted = {request.number for request in self.waiting}
        held: set[int] = set()
        for request in sorted(self.waiting, key=self.rank):
            if not ungranted.isdisjoint(request.after):
                continue
            if held.isdisjoint(request.devices) and all(map(self._has_room, request.devices)):
                return request
            held |= set(request.devices)
        return None

    def _has_room(self, device: int) -> bool:
        costs_s = [other.cost_s for other in self.outstanding.values() if device in other.devices]
        return sum(costs_s) < LOOK_AHEAD_S or (len(costs_s) == 1 and costs_s[0] <= LONGEST * LOOK_AHEAD_S)

    def drop(self, numbers: set[int]) -> None:
        while True:
            self.waiting = [request for request in self.waiting if request.number not in numbers]
            more = {request.number for request in self.waiting if not numbers.isdisjoint(request.after)}
            if not more:
                return
            numbers |= more


DEVICE_SETS = st.frozensets(st.integers(0, 5), min_size=1) | st.sampled_from([range(2), range(2, 4), range(6)])


@given(is_by_need=st.booleans(), data=st.data())
def test_grants_are_those_of_a_plain_scheduler(is_by_need: bool, data: st.DataObject) -> None:
    policy: Policy = EarliestNeed() if is_by_need else Fifo()
    scheduler = IslandScheduler(policy, LOOK_AHEAD_S)
    slow = SlowScheduler(lambda request: (request.latest_start_s if is_by_need else 0.0, request.number))
    requests: list[GangRequest] = []
    dropped: set[int] = set()
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(["submit", "submit", "grant", "complete", "withdraw"]))
        if step == "submit":
            number = len(requests)
            known = [earlier for earlier in range(number) if earlier not in dropped]
            after = data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
            request = GangRequest(
                number,
                data.draw(st.sampled_from("abc")),
                data.draw(DEVICE_SETS),
                data.draw(st.sampled_from([0.0005, 0.001, 0.003, 0.03])),
                data.draw(st.none() | st.sampled_from([-1.0, 0.0, 1.0])),
                tuple(after),
            )
            requests.append(request)
            scheduler.submit(request)
            slow.waiting.append(request)
        elif step == "grant":
            mine, other = granted(scheduler), slow.grants()
            assert sorted(mine) == sorted(other)
            for device in range(6):  # every device sees the same order; gangs without a common one may change places
                assert [n for n in mine if device in requests[n].devices] == [
                    n for n in other if device in requests[n].devices
                ]
        elif step == "complete" and slow.outstanding:
            number = data.draw(st.sampled_from(sorted(slow.outstanding)))
            del slow.outstanding[number]
            scheduler.completed(number, 0.0)
        elif step == "withdraw":
            client = data.draw(st.sampled_from("abc"))
            before = {request.number for request in slow.waiting}
            slow.drop({request.number for request in slow.waiting if request.client == client})
            gone = before - {request.number for request in slow.waiting}
            dropped |= gone
            assert scheduler.withdraw(client) == sorted(gone)


@given(st.data())
def test_shares_leave_no_device_idle_for_ever(data: st.DataObject) -> None:
    """Under a policy whose ranks change, everything is granted, and devices get no more than the look-ahead."""
    scheduler = IslandScheduler(ProportionalShare({"a": 3.0}), LOOK_AHEAD_S)
    requests: list[GangRequest] = []
    outstanding: dict[int, GangRequest] = {}
    done = 0
    for _ in range(data.draw(st.integers(1, 40))):
        client, devices = data.draw(st.sampled_from("abc")), data.draw(DEVICE_SETS)
        requests.append(GangRequest(len(requests), client, devices, data.draw(st.sampled_from([0.001, 0.003]))))
        scheduler.submit(requests[-1])
    while done < len(requests):
        outstanding |= {number: requests[number] for number in granted(scheduler)}
        assert outstanding, "gangs wait for idle devices"
        for device in range(6):
            costs = [request.cost_s for request in outstanding.values() if device in request.devices]
            assert scheduler.outstanding_s(device) == pytest.approx(sum(costs))
            assert sum(costs[:-1]) < LOOK_AHEAD_S or len(costs) == 2  # one behind a long one
        number = data.draw(st.sampled_from(sorted(outstanding)))
        del outstanding[number]
        scheduler.completed(number, done * 0.001)
        done += 1
    assert all(scheduler.outstanding_s(device) == 0 for device in range(6))


def test_small_gangs_do_not_pass_a_large_one_for_ever() -> None:
    scheduler = IslandScheduler(Fifo(), 0.00001)
    for number in range(2):
        scheduler.submit(GangRequest(number, "small", range(number, number + 1), 0.001))
    scheduler.submit(GangRequest(2, "large", range(2), 0.001))
    for number in range(3, 5):
        scheduler.submit(GangRequest(number, "small", range(number - 3, number - 2), 0.001))
    assert granted(scheduler) == [0, 1]
    scheduler.completed(0, 0.0)
    assert granted(scheduler) == []  # gang 3 would fit, but the large one holds both devices
    scheduler.completed(1, 0.0)
    assert granted(scheduler) == [2]
    scheduler.completed(2, 0.0)
    assert granted(scheduler) == [3, 4]


def test_gangs_without_common_devices_do_not_wait_for_each_other() -> None:
    scheduler = IslandScheduler(Fifo(), 0.00001)
    for number in range(3):
        scheduler.submit(GangRequest(number, "a", range(2), 0.001))
    scheduler.submit(GangRequest(3, "a", range(2, 4), 0.001))
    assert sorted(granted(scheduler)) == [0, 3]


def test_look_ahead_bounds_what_a_device_is_granted() -> None:
    scheduler = IslandScheduler(Fifo(), 0.01)
    for number in range(100):
        scheduler.submit(GangRequest(number, "a", range(4), 0.003))
    assert len(granted(scheduler)) == 4  # 9 ms are less than the look-ahead, 12 ms are not
    assert scheduler.outstanding_s(3) == pytest.approx(0.012)
    scheduler.completed(0, 0.003)
    assert len(granted(scheduler)) == 1


def test_one_gang_waits_behind_one_that_is_longer_than_the_look_ahead() -> None:
    scheduler = IslandScheduler(Fifo(), 0.01)
    for number in range(3):
        scheduler.submit(GangRequest(number, "a", range(4), 0.05))
    scheduler.submit(GangRequest(3, "a", range(4), 0.001))
    scheduler.submit(GangRequest(4, "a", range(4), 0.001))
    assert granted(scheduler) == [0, 1]
    scheduler.completed(0, 0.05)
    assert granted(scheduler) == [2]
    scheduler.completed(1, 0.1)
    assert granted(scheduler) == [3]
    assert granted(scheduler) == []  # there is work behind the long one
    scheduler.completed(2, 0.15)
    assert granted(scheduler) == [4]


def test_nobody_waits_behind_a_gang_that_is_much_longer_than_the_look_ahead() -> None:
    scheduler = IslandScheduler(Fifo(), 0.01)
    scheduler.submit(GangRequest(0, "a", range(4), 0.2))
    scheduler.submit(GangRequest(1, "a", range(2), 0.001))
    assert granted(scheduler) == [0]
    scheduler.completed(0, 0.2)
    assert granted(scheduler) == [1]


def test_a_gang_larger_than_the_look_ahead_runs() -> None:
    scheduler = IslandScheduler(Fifo(), 0.001)
    scheduler.submit(GangRequest(0, "a", range(4), 5.0))
    assert granted(scheduler) == [0]


def test_earliest_need_goes_by_slack_and_not_by_deadline() -> None:
    scheduler = IslandScheduler(EarliestNeed(), 10.0)
    scheduler.submit(GangRequest(0, "a", range(1), 0.1))
    scheduler.submit(GangRequest(1, "a", range(1), 0.1, need_s=1.0))
    scheduler.submit(GangRequest(2, "b", range(1), 1.5, need_s=2.0))
    scheduler.submit(GangRequest(3, "b", range(1), 0.1))
    assert granted(scheduler) == [2, 1, 0, 3]


def test_results_are_not_waited_for_but_their_grants_are() -> None:
    scheduler = IslandScheduler(EarliestNeed(), 10.0)
    scheduler.submit(GangRequest(0, "a", range(1), 1.0))
    scheduler.submit(GangRequest(1, "a", range(1), 1.0, need_s=0.0, after=(0,)))
    assert granted(scheduler) == [0, 1]


def test_withdraw_drops_what_comes_after_on_other_islands_too() -> None:
    cluster = ClusterScheduler(Fifo, 0.001)
    first, second = cluster.add_island("first"), cluster.add_island("second")
    first.submit(GangRequest(0, "other", range(1), 1.0))
    first.submit(GangRequest(1, "killed", range(1), 1.0))
    second.submit(GangRequest(2, "other", range(1, 2), 1.0, after=(1,)))
    second.submit(GangRequest(3, "other", range(1, 2), 1.0))
    assert [(island, grant.number) for island, grant in cluster.grants(0.0)] == [("first", 0), ("second", 3)]
    assert cluster.withdraw("killed") == [1, 2]
    first.completed(0, 1.0)
    second.completed(3, 1.0)
    assert cluster.grants(1.0) == []


def test_a_grant_lets_gangs_of_other_islands_go() -> None:
    cluster = ClusterScheduler(Fifo, 1.0)
    first, second = cluster.add_island("first"), cluster.add_island("second")
    first.submit(GangRequest(0, "a", range(1), 1.0))
    second.submit(GangRequest(1, "a", range(1, 2), 1.0, after=(0,)))
    first.submit(GangRequest(2, "a", range(2, 3), 1.0, after=(1,)))
    assert [(island, grant.number, grant.order) for island, grant in cluster.grants(0.0)] == [
        ("first", 0, 0),
        ("second", 1, 0),
        ("first", 2, 1),
    ]


def test_granted_gangs_of_a_killed_client_stay_outstanding_until_they_end() -> None:
    scheduler = IslandScheduler(ProportionalShare(), 0.001)
    scheduler.submit(GangRequest(0, "killed", range(2), 1.0))
    scheduler.submit(GangRequest(1, "killed", range(2), 1.0))
    scheduler.submit(GangRequest(2, "other", range(2), 1.0))
    assert granted(scheduler) == [0]
    assert scheduler.withdraw("killed") == [1]
    assert granted(scheduler) == []
    scheduler.submit(GangRequest(3, "killed", range(2), 1.0))  # it is back under the same name
    scheduler.completed(0, 0.5)
    assert granted(scheduler) == [2]
    scheduler.completed(2, 0.6)
    assert granted(scheduler) == [3]


def test_gangs_are_found_by_device() -> None:
    scheduler = IslandScheduler(Fifo(), 0.001)
    for number, devices in enumerate([range(2), range(1, 3), range(4, 6), range(2)]):
        scheduler.submit(GangRequest(number, "a", devices, 1.0))
    assert sorted(granted(scheduler)) == [0, 2]
    assert scheduler.using([1], granted=True) == [0]
    assert scheduler.using([1, 5], granted=False) == [1, 3]
    assert scheduler.drop([0, 1]) == [1]  # granted gangs are not dropped


def test_many_sets_of_devices_come_and_go() -> None:
    scheduler = IslandScheduler(Fifo(), 0.001)
    for number in range(2_000):
        scheduler.submit(GangRequest(number, "a", range(number % 501, number % 501 + 3), 0.001))
        assert granted(scheduler) == [number]
        scheduler.completed(number, 0.0)


def test_numbers_follow_each_other_over_all_islands() -> None:
    cluster = ClusterScheduler(Fifo)
    cluster.add_island("first").submit(GangRequest(5, "a", range(1), 1.0))
    second = cluster.add_island("second")
    with pytest.raises(GangOrderError, match="gang 5: number: must be above the last one, 5"):
        second.submit(GangRequest(5, "a", range(1), 1.0))
    with pytest.raises(SchedulingError, match="'second'"):
        cluster.add_island("second")
    with pytest.raises(SchedulingError, match="'third'"):
        _ = cluster["third"]


def test_only_granted_gangs_complete_and_only_once() -> None:
    scheduler = IslandScheduler(Fifo(), 0.001)
    scheduler.submit(GangRequest(0, "a", range(1), 1.0))
    with pytest.raises(UnknownGangError, match="gang 0"):
        scheduler.completed(0, 0.0)
    scheduler.grants(0.0)
    scheduler.completed(0, 0.0)
    with pytest.raises(UnknownGangError, match="gang 0"):
        scheduler.completed(0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"devices": frozenset()}, "gang 7: devices"),
        ({"cost_s": 0.0}, "gang 7: cost_s"),
        ({"cost_s": float("nan")}, "gang 7: cost_s"),
        ({"cost_s": 1e9}, "gang 7: cost_s"),
        ({"need_s": float("nan")}, "gang 7: need_s"),
        ({"after": (7,)}, "gang 7: after: gang 7"),
    ],
)
def test_requests_that_make_no_sense_are_refused_by_name(arguments: dict[str, object], named: str) -> None:
    fields: dict[str, object] = {"number": 7, "client": "a", "devices": range(1), "cost_s": 1.0, **arguments}
    with pytest.raises(InvalidGangError, match=named):
        GangRequest(**fields)  # type: ignore[arg-type]


def test_negative_devices_are_refused_and_nothing_is_lost() -> None:
    scheduler = IslandScheduler(Fifo())
    with pytest.raises(InvalidGangError, match="-1"):
        scheduler.submit(GangRequest(0, "a", frozenset({-1, 2}), 1.0))
    scheduler.submit(GangRequest(0, "a", frozenset({2}), 1.0))
    assert granted(scheduler) == [0]


@pytest.mark.parametrize("look_ahead_s", [0.0, -1.0, float("nan")])
def test_look_ahead_must_be_positive(look_ahead_s: float) -> None:
    with pytest.raises(SchedulingError, match="look_ahead_s"):
        IslandScheduler(Fifo(), look_ahead_s)
