from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.schedulers.builders import ask
from workloads.schedulers.muri import group_jobs, interleave, shortest_remaining_service_first

COMPUTES, SENDS = (3.0, 1.0), (1.0, 3.0)


def test_jobs_that_need_different_resources_fill_all_of_a_round() -> None:
    assert interleave((COMPUTES, SENDS)).round_s == 4.0
    assert interleave((COMPUTES, SENDS)).efficiency == 1.0


def test_jobs_that_need_the_same_wait_for_each_other() -> None:
    assert interleave((COMPUTES, COMPUTES)).round_s == 6.0
    assert interleave((COMPUTES, COMPUTES)).efficiency == pytest.approx(8 / 12)


def test_a_job_alone_uses_one_resource_at_a_time() -> None:
    alone = interleave(((1.0, 2.0, 3.0),))
    assert (alone.offsets, alone.round_s) == ((0,), 6.0)
    assert alone.efficiency == pytest.approx(1 / 3)


@given(st.lists(st.tuples(*[st.integers(0, 9).map(float)] * 3), min_size=1, max_size=3))
def test_no_order_of_turns_is_shorter(stages: list[tuple[float, ...]]) -> None:
    def round_s(offsets: tuple[int, ...]) -> float:
        return sum(max(job[(step - off) % 3] for job, off in zip(stages, offsets, strict=True)) for step in range(3))

    found = interleave(tuple(stages))
    assert found.round_s == round_s(found.offsets) == min(map(round_s, permutations(range(3), len(stages))))
    assert len(set(found.offsets)) == len(stages)
    assert found.efficiency <= 1 + 1e-12


def test_more_jobs_than_resources_cannot_take_turns() -> None:
    with pytest.raises(ValueError, match="1 to 2 jobs with 2 stages each"):
        interleave((COMPUTES, SENDS, SENDS))


def names(groups: tuple[object, ...]) -> list[str]:
    return ["".join(member.name for member in group.members) for group in groups]  # type: ignore[attr-defined]


def test_the_matching_pairs_jobs_that_complement_each_other() -> None:
    waiting = [
        ask(1, 8, "a", stages_s=COMPUTES),
        ask(1, 8, "b", stages_s=COMPUTES),
        ask(1, 8, "c", stages_s=SENDS),
        ask(1, 8, "d", stages_s=SENDS),
        ask(1, 4, "e", stages_s=SENDS),
    ]
    paired = names(group_jobs(waiting, 20))
    assert {frozenset(group) for group in paired} in (
        {frozenset("ac"), frozenset("bd"), frozenset("e")},
        {frozenset("ad"), frozenset("bc"), frozenset("e")},
    )
    assert names(group_jobs(waiting, 36)) == ["a", "b", "c", "d", "e"]  # all fit, nobody has to share
    assert names(group_jobs(waiting, 1)) == paired  # two resources: no more than two jobs


def test_pairs_are_paired_again_while_there_are_resources() -> None:
    stages = (1.0, 1.0, 1.0, 1.0)
    waiting = [ask(1, 8, name, stages_s=stages) for name in "abcde"]
    assert sorted(map(len, names(group_jobs(waiting, 24)))) == [1, 2, 2]
    assert sorted(map(len, names(group_jobs(waiting, 16)))) == [1, 4]


def test_the_shortest_service_comes_first() -> None:
    waiting = [
        ask(1, 8, "long", run_time_s=10.0),
        ask(1, 1, "small", run_time_s=50.0),
        ask(1, 8, "later", run_time_s=10.0, arrival_s=1.0),
    ]
    assert [request.name for request in shortest_remaining_service_first(reversed(waiting))] == [
        "small",
        "long",
        "later",
    ]
