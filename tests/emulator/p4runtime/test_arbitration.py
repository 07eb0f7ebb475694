"""Client arbitration as a table of steps, and its invariants over random ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.p4runtime.arbitration import Arbitration, ElectionIdInUseError

A, B, C = 1, 2, 3


def after(*steps: tuple[int, int | None] | int) -> Arbitration:
    """The state after bids (stream, id) and departures (stream)."""
    state = Arbitration()
    for step in steps:
        state, _ = state.leave(step) if isinstance(step, int) else state.bid(*step)
    return state


@pytest.mark.parametrize(
    ("before", "bid", "primary", "highest_id", "informed"),
    [
        pytest.param((), (A, 5), A, 5, (A,), id="first"),
        pytest.param((), (A, 0), A, 0, (A,), id="zero is an id"),
        pytest.param((), (A, None), None, None, (A,), id="unset never becomes primary"),
        pytest.param(((A, 5),), (B, 4), A, 5, (B,), id="backup"),
        pytest.param(((A, 5),), (B, 6), B, 6, (A, B), id="higher takes over, told last"),
        pytest.param(((A, 5), (B, 4)), (B, 6), B, 6, (A, B), id="backup raises its bid"),
        pytest.param(((A, 5), (B, 4)), (A, 3), None, 5, (B, A), id="primary steps down"),
        pytest.param(((A, 5), (B, 4)), (A, None), None, 5, (B, A), id="primary unsets its id"),
        pytest.param(((A, 5), (B, 4)), (B, 3), A, 5, (B,), id="backup lowers its bid"),
        pytest.param(((A, 5), (B, 4)), (A, 5), A, 5, (B, A), id="primary repeats its bid"),
        pytest.param(((A, 5), (B, 4), A), (B, 4), None, 5, (B,), id="less than ever seen is not enough"),
        pytest.param(((A, 5), (B, 4), A), (B, 5), B, 5, (B,), id="the highest ever seen is enough"),
        pytest.param(((A, 5), (B, None)), (C, None), A, 5, (C,), id="any number may leave it unset"),
    ],
)
def test_bid(
    before: tuple[tuple[int, int | None] | int, ...],
    bid: tuple[int, int | None],
    primary: int | None,
    highest_id: int | None,
    informed: tuple[int, ...],
) -> None:
    state, told = after(*before).bid(*bid)
    assert (state.primary, state.highest_id, told) == (primary, highest_id, informed)


def test_an_id_of_a_live_stream_cannot_be_bid() -> None:
    state = after((A, 5), (B, 4))
    with pytest.raises(ElectionIdInUseError, match="election id 4 exists"):
        state.bid(C, 4)
    with pytest.raises(ElectionIdInUseError, match="election id 5 exists"):
        state.bid(B, 5)


def test_when_the_primary_leaves_the_others_are_told_and_there_is_none() -> None:
    state, told = after((A, 5), (B, 4), (C, None)).leave(A)
    assert (state.primary, state.highest_id, told) == (None, 5, (B, C))


def test_when_a_backup_leaves_nobody_is_told() -> None:
    state, told = after((A, 5), (B, 4)).leave(B)
    assert (state.primary, told) == (A, ())


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 6), st.just(2**128 - 1))),
            st.integers(0, 4),
        )
    )
)
def test_invariants(steps: list[tuple[int, int | None] | int]) -> None:
    state = Arbitration()
    ever_accepted: list[int] = []
    for step in steps:
        before = state
        try:
            state, told = state.leave(step) if isinstance(step, int) else state.bid(*step)
        except ElectionIdInUseError:
            continue
        if isinstance(step, tuple) and step[1] is not None:
            ever_accepted.append(step[1])
        bids = [bid for bid in state.bids.values() if bid is not None]
        assert len(set(bids)) == len(bids)
        assert state.highest_id == max(ever_accepted, default=None)
        if state.primary is not None:
            assert state.bids[state.primary] == state.highest_id
        if state.primary != before.primary:
            assert set(told) == set(state.bids)
