"""Ranks: coordinates, groups and lines, compared with the groups that Megatron-LM documents."""

import pytest

from workloads.combined.ranks import Degrees, RankOrder, Ranks


def ranks(
    tensor: int = 1, context: int = 1, expert: int = 1, pipeline: int = 1, data: int = 1, **keys: object
) -> Ranks:
    order = RankOrder(str(keys.get("order", "tp-cp-dp-pp")))
    per_host = int(str(keys.get("per_host", 8)))
    degrees = Degrees(tensor, context, expert, pipeline, data)
    hosts = tuple(f"h{number}" for number in range(degrees.num_ranks // per_host))
    return Ranks(degrees, order, hosts, per_host)


def test_groups_are_those_of_megatrons_example() -> None:
    """16 GPUs, 2 tensor- and 4 pipeline-parallel ranks, as the comments of its parallel_state.py have them."""
    of = ranks(tensor=2, pipeline=4, data=2)
    assert [of.rank(0, 0, 0, stage) for stage in range(4)] == [0, 4, 8, 12]
    tensor = [group for stage in range(4) for group in of.tensor_groups(stage, (0, 1))]
    assert tensor == [[first, first + 1] for first in range(0, 16, 2)]
    data = [group for stage in range(4) for group in of.gradient_groups(stage)]
    assert sorted(data) == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]


def test_data_parallelism_may_be_the_slowest() -> None:
    of = ranks(tensor=8, pipeline=2, data=2, order="tp-cp-pp-dp")
    assert [tuple(of.stage_hosts(stage, (data,))) for data in range(2) for stage in range(2)] == [
        ("h0",),
        ("h1",),
        ("h2",),
        ("h3",),
    ]


def test_every_rank_is_in_one_group_of_each_kind() -> None:
    of = ranks(tensor=2, context=2, expert=4, pipeline=2, data=4)
    replicas = tuple(range(4))
    for groups in (of.tensor_groups, of.context_groups, of.expert_groups):
        members = [rank for stage in range(2) for group in groups(stage, replicas) for rank in group]
        assert sorted(members) == list(range(32))
    for groups_of_stage in (of.gradient_groups, of.expert_gradient_groups):
        members = [rank for stage in range(2) for group in groups_of_stage(stage) for rank in group]
        assert sorted(members) == list(range(32))


def test_ranks_with_the_same_experts_are_one_from_each_expert_group() -> None:
    of = ranks(expert=4, data=8)
    assert list(of.expert_groups(0, range(8))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(of.expert_gradient_groups(0)) == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    ("degrees", "lines"),
    [
        ({"tensor": 8, "data": 3}, ((0,), (1,), (2,))),
        ({"tensor": 4, "data": 4}, ((0, 1), (2, 3))),
        ({"tensor": 8, "data": 4, "expert": 2}, ((0, 1), (2, 3))),
        ({"tensor": 8, "context": 2, "data": 2, "expert": 2}, ((0,), (1,))),
    ],
)
def test_replicas_that_share_hosts_or_experts_are_a_line(
    degrees: dict[str, int], lines: tuple[tuple[int, ...], ...]
) -> None:
    assert ranks(**degrees).lines() == lines


def test_stages_share_a_host_by_their_ranks() -> None:
    """Two stages of 12 ranks on hosts of eight."""
    of = ranks(tensor=12, pipeline=2)
    assert of.stage_hosts(0, (0,)) == {"h0": 8, "h1": 4}
    assert of.stage_hosts(1, (0,)) == {"h1": 4, "h2": 8}


def test_replicas_on_one_host_in_different_stages_do_not_step_together() -> None:
    """Three stages of four ranks: the first replica ends in the middle of a host, where the second begins."""
    of = ranks(tensor=4, pipeline=3, data=4, order="tp-cp-pp-dp")
    assert of.lines() == ((0,), (1,), (2,), (3,))
    assert of.line_of_each_kind() == ((0,), (1,))


def test_replicas_that_meet_in_any_stage_step_together() -> None:
    assert ranks(tensor=2, pipeline=3, data=4, order="tp-cp-pp-dp").lines() == ((0, 1, 2, 3),)
    assert ranks(tensor=2, pipeline=2, data=3, per_host=4).lines() == ((0, 1, 2),)
