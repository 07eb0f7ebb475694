"""Closed forms computed by hand; their agreement with task graphs is tested with the task graphs."""

import math
from collections.abc import Callable

import pytest

from hostlib.arrangements import (
    coflow,
    gathers,
    gathers_by_equation_7,
    interleaved,
    one_forward_one_backward,
    parameters,
    scatters,
    staggered,
)


def test_flows_needed_together_and_one_after_the_other() -> None:
    assert coflow(3) == (0.0, 0.0, 0.0)
    assert staggered(3, 0.5) == (0.0, 0.5, 1.0)


def test_in_1f1b_distances_grow_when_the_first_backward_comes_back() -> None:
    assert one_forward_one_backward(5, 4, 1, 1.0, 2.0) == (0.0, 1.0, 2.0, 9.0, 12.0)
    assert one_forward_one_backward(3, 4, 3, 1.0, 2.0) == (0.0, 3.0, 6.0)


def test_an_interleaved_pipeline_waits_for_the_first_backward() -> None:
    """The last of two hosts warms up for a round, the other one two steps longer and waits a unit."""
    assert interleaved(2, 2, 2, 1, 1.0, 2.0) == (0.0, 1.0, 2.0, 5.0)


def test_an_interleaved_pipeline_of_many_hosts_waits_again_for_its_last_one() -> None:
    """Of five hosts the second alternates from the 12th step on; the second round's second chunk comes a unit later."""
    alternating = [11.0 + 2.0 * number for number in range(9)]
    assert interleaved(10, 5, 2, 1, 1.0, 1.0)[11:] == (*alternating[:4], *(late + 1.0 for late in alternating[4:]))


def test_gathers_follow_layers_of_any_length_forward_and_back() -> None:
    assert gathers([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == (0.0, 1.0, 3.0, 6.0, 12.0, 17.0)
    assert parameters([1.0, 2.0, 3.0]) == (0.0, 1.0, 3.0)


def test_equation_7_takes_the_first_backward_gather_for_a_step_behind_a_backward_one() -> None:
    exact, printed = gathers([1.0] * 3, [2.0] * 3), gathers_by_equation_7(3, 1.0, 2.0)
    assert printed == (0.0, 1.0, 2.0, 4.0, 6.0, 8.0)
    assert [late - due for late, due in zip(printed, exact, strict=True)] == [0.0] * 3 + [1.0] * 3


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [(1, (0.0, 2.0, 3.0, 3.5)), (2, (0.0, 1.0, 1.5, 1.5)), (4, (0.0,) * 4), (9, (0.0,) * 4)],
)
def test_scatters_are_due_when_their_buffers_are(buffers: int, expected: tuple[float, ...]) -> None:
    """Ready after 4, 7, 9 and 10 s; the optimizer steps half a second later."""
    assert scatters([1.0, 2.0, 3.0, 4.0], buffers, 0.5) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coflow(0), "num_flows must be at least 1, not 0"),
        (lambda: staggered(2, math.nan), "step_s must be finite and not negative, not nan"),
        (lambda: staggered(2, -1.0), "step_s must be"),
        (lambda: one_forward_one_backward(2, 2, 0, 1.0, 1.0), "consumer must lie between 1 and 1, not 0"),
        (lambda: one_forward_one_backward(2, 1, 1, 1.0, 1.0), "num_hosts must be at least 2"),
        (lambda: interleaved(3, 2, 2, 1, 1.0, 2.0), "num_micro_batches must be a multiple of 2 hosts, not 3"),
        (lambda: interleaved(2, 2, 1, 1, 1.0, 2.0), "num_chunks must be at least 2"),
        (lambda: interleaved(2, 2, 2, 1, 2.0, 1.0), "backward_s must be at least forward_s"),
        (lambda: gathers([], []), "forward_s must have a duration"),
        (lambda: gathers([1.0], [1.0, 2.0]), "backward_s must have 1 durations as forward_s has, not 2"),
        (lambda: gathers([1.0], [math.inf]), "backward_s must be finite"),
        (lambda: gathers_by_equation_7(0, 1.0, 1.0), "num_layers must be at least 1"),
        (lambda: scatters([1.0], 0), "buffers must be at least 1"),
        (lambda: parameters([math.nan]), "forward_s must be finite"),
    ],
)
def test_what_cannot_be_meant_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
