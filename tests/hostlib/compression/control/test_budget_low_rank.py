"""Low rank as a choice of the budget controller: when it is sent, and when not."""

from dataclasses import replace

import pytest

from hostlib.compression.control.cost import Linear
from tests.hostlib.compression.control.devices import CPU, GPU
from tests.hostlib.compression.control.plant import FREELY, Plant, run

MATRICES = ((1600, 1500), (2620, 2500), (2600, 1000))
"""Of as many elements as the plant's buckets."""


@pytest.mark.parametrize("mbps", [50, 200, 1000])
def test_low_rank_is_sent_where_selection_takes_long(mbps: float) -> None:
    """By the table of a CPU a step waits for its codecs, and products of thin matrices are quicker."""
    low = replace(FREELY, low_rank=(8, 4, 2, 1))
    plant = Plant(mbps * 1e6, costs=replace(CPU, factor=Linear(0, 0, 3e-10)), shapes=MATRICES)
    ran = run(plant, 40, settings=low)
    last = ran.decisions[-1]
    ranks = [choice.rank for choice in last.choices]
    assert any(ranks)
    assert set(ranks) <= {0, *low.low_rank}
    assert last.explanation.low_rank_buckets == sum(map(bool, ranks))
    assert f" Sent as low rank: {last.explanation.low_rank_buckets} of the buckets." in str(last.explanation)
    without = run(replace(plant, time_s=0), 40, settings=FREELY)
    assert ran.share(plant, since=10) >= without.share(plant, since=10) + 0.05


def test_sparse_is_sent_where_it_is_as_quick() -> None:
    """It loses less at as many bytes, so a link that fits it does not need low rank."""
    low = replace(FREELY, low_rank=(8, 4, 2, 1))
    for mbps in (50, 200, 1000):
        last = run(Plant(mbps * 1e6, costs=GPU, shapes=MATRICES), 40, settings=low).decisions[-1]
        assert not any(choice.rank for choice in last.choices)


def test_dense_comes_before_low_rank() -> None:
    low = replace(FREELY, low_rank=(8, 4, 2, 1))
    last = run(Plant(40e9, 0.6, hop_s=5e-6, shapes=MATRICES), 20, settings=low).decisions[-1]
    assert all(choice.is_dense for choice in last.choices)


def test_low_rank_is_not_sent_unless_asked_for() -> None:
    with_shapes, without = (run(Plant(100e6, costs=GPU, shapes=shapes), 40) for shapes in (MATRICES, ()))
    assert with_shapes.decisions == without.decisions


def test_low_rank_leaves_a_remainder() -> None:
    """The last bucket has no other choice that is as small."""
    low = replace(FREELY, lowest_ratio=0.5, start_ratio=0.5, low_rank=(8,))
    last = run(Plant(300e6, costs=GPU, has_remainder=True, shapes=MATRICES), 40, settings=low).decisions[-1]
    assert last.choices[-1].rank == 8
    assert last.remainder is not None
