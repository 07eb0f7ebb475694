import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.resharding import Resharding

_FACTORS = (1, 2, 3, 4, 6, 12)


@st.composite
def reshardings(draw: st.DrawFn) -> Resharding:
    axes = draw(st.integers(1, 3))
    spec = ArraySpec((12,) * axes, "int64")
    one, other = (
        Sharding(draw(st.one_of(st.none(), st.integers(0, axes - 1))), draw(st.sampled_from(_FACTORS))) for _ in "12"
    )
    return Resharding(spec, one, other)


def cut(array: "np.ndarray", sharding: Sharding) -> list["np.ndarray"]:
    if sharding.axis is None:
        return [array] * sharding.shards
    return np.split(array, sharding.shards, sharding.axis)


@given(reshardings())
def test_pieces_make_every_destination_shard_each_element_once(resharding: Resharding) -> None:
    array = np.arange(np.prod(resharding.spec.shape)).reshape(resharding.spec.shape)
    sources = cut(array, resharding.source)
    for number, expected in enumerate(cut(array, resharding.destination)):
        made, filled = np.zeros_like(expected), np.zeros(expected.shape, int)
        for piece in resharding.pieces(number):
            made[piece.destination_slices] = sources[piece.source][piece.source_slices]
            filled[piece.destination_slices] += 1
        assert (filled == 1).all()
        assert (made == expected).all()


@given(reshardings())
def test_sources_and_destinations_are_the_same_pairs(resharding: Resharding) -> None:
    by_source = {(i, j) for i in range(resharding.source.shards) for j in resharding.destinations(i)}
    by_destination = {(i, j) for j in range(resharding.destination.shards) for i in resharding.sources(j)}
    assert by_source == by_destination


def test_blocks_of_one_axis_meet_their_neighbours_only() -> None:
    resharding = Resharding(ArraySpec((6,), "int64"), Sharding(0, 2), Sharding(0, 3))
    assert [list(resharding.sources(shard)) for shard in range(3)] == [[0], [0, 1], [1]]


def test_a_large_edge_takes_as_little_as_a_small_one() -> None:
    resharding = Resharding(ArraySpec((1 << 20,), "int64"), Sharding(0, 1 << 20), Sharding(0, 1 << 10))
    assert resharding.sources(7) == range(7 * 1024, 8 * 1024)
