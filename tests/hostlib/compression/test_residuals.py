"""What was not sent yet: it follows parameters to other buckets, a scaler, and a checkpoint."""

import logging
from typing import Any

import pytest
import torch

from hostlib.compression.residuals import Residuals, Section

CPU = torch.device("cpu")
A, B, C = Section("a", 2), Section("b", 3), Section("c", 1)
SIZES = {"a": 2, "b": 3, "c": 1}


def filled(momentum: float = 0.0) -> Residuals:
    """Residuals of a and b: 1 to 5; and a velocity ten times that."""
    residuals = Residuals(momentum)
    held = residuals.held((A, B), CPU)
    held.unsent.copy_(torch.arange(1.0, 6.0))
    if held.velocity is not None:
        held.velocity.copy_(torch.arange(10.0, 60.0, 10.0))
    return residuals


def test_parameters_take_their_part_along_to_other_buckets() -> None:
    residuals = filled()
    assert residuals.held((B, C), CPU).unsent.tolist() == [3, 4, 5, 0]
    assert residuals.held((A,), CPU).unsent.tolist() == [1, 2]
    residuals.held((B, C), CPU).unsent.mul_(2)
    assert residuals.held((C, B, A), CPU).unsent.tolist() == [0, 6, 8, 10, 1, 2]


def test_a_bucket_as_before_is_the_same_memory() -> None:
    residuals = filled()
    assert residuals.held((A, B), CPU).unsent.data_ptr() == residuals.held((A, B), CPU).unsent.data_ptr()
    residuals.held((B,), CPU).unsent.zero_()
    assert residuals.held((A, B), CPU).unsent.tolist() == [1, 2, 0, 0, 0]


def test_all_is_taken_where_all_is_sent() -> None:
    residuals = filled()
    gradient = torch.full((5,), 0.5, dtype=torch.bfloat16)
    assert residuals.taken((A, B), gradient).tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert gradient.tolist() == [0.5] * 5
    assert residuals.is_empty((A, B))
    assert residuals.taken((A, B), gradient).tolist() == [0.5] * 5


def test_momentum_goes_on_where_all_is_sent() -> None:
    residuals = filled(momentum=0.5)
    gradient = torch.ones(5)
    # velocity = 0.5 x (10, 20, ...) + 1, added to what was unsent
    assert residuals.taken((A, B), gradient).tolist() == [7, 13, 19, 25, 31]
    # velocity = 0.5 x (6, 11, ...) + 1
    assert residuals.taken((A, B), gradient).tolist() == [4, 6.5, 9, 11.5, 14]
    assert not residuals.is_empty((A, B))


def test_a_parameter_of_another_size_begins_anew() -> None:
    assert filled().held((Section("a", 4), B), CPU).unsent.tolist() == [0, 0, 0, 0, 3, 4, 5]


def test_scales_are_followed() -> None:
    residuals = filled(momentum=0.5)
    residuals.rescale(8)
    residuals.rescale(2)
    residuals.rescale(2)
    held = residuals.held((A, B), CPU)
    assert held.unsent.tolist() == [2, 4, 6, 8, 10]
    assert held.velocity is not None
    assert held.velocity.tolist() == [20, 40, 60, 80, 100]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_that_are_none_change_nothing(scale: float) -> None:
    residuals = filled()
    with pytest.raises(ValueError, match="scale"):
        residuals.rescale(scale)
    assert residuals.held((A, B), CPU).unsent.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan")])
def test_a_momentum_must_be_one(momentum: float) -> None:
    with pytest.raises(ValueError, match="momentum"):
        Residuals(momentum)


def test_a_checkpoint_keeps_all() -> None:
    before = filled(momentum=0.5)
    before.rescale(4)
    after = Residuals(momentum=0.5)
    assert after.load_state_dict(before.state_dict(2), SIZES, 2) == ()
    after.rescale(1)
    held = after.held((B, A, C), CPU)
    assert held.unsent.tolist() == [3, 4, 5, 1, 2, 0]
    assert held.velocity is not None
    assert held.velocity.tolist() == [30, 40, 50, 10, 20, 0]


def test_a_checkpoint_is_a_copy() -> None:
    residuals = filled()
    state = residuals.state_dict(2)
    residuals.held((A, B), CPU).unsent.zero_()
    assert state["unsent"]["b"].tolist() == [3, 4, 5]
    after = Residuals()
    after.load_state_dict(state, SIZES, 2)
    after.held((A, B), CPU).unsent.zero_()
    assert state["unsent"]["b"].tolist() == [3, 4, 5]


def test_another_number_of_ranks_resets_all_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    after = Residuals()
    with caplog.at_level(logging.WARNING):
        (said,) = after.load_state_dict(filled().state_dict(2), SIZES, 3)
    assert said == "unsent gradients are reset: they were of 2 ranks, and there are 3"
    assert caplog.messages == [said]
    assert after.is_empty((A, B))


def test_what_does_not_fit_is_left_out_by_name() -> None:
    after = Residuals()
    said = after.load_state_dict(filled().state_dict(2), {"b": 4}, 2)
    assert said == (
        "unsent gradient of a is reset: there is no such parameter",
        "unsent gradient of b is reset: it had 3 elements, and has 4",
    )
    assert after.is_empty((A, B))
    assert Residuals().load_state_dict(filled().state_dict(2), None, 2) == ()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"world_size": 2, "scale": 1.0, "unsent": {"a": 1}, "velocity": {}},
        {"world_size": 2, "scale": "x", "unsent": {}, "velocity": {}},
        {"world_size": None, "scale": 1.0, "unsent": {}, "velocity": {}},
        {"world_size": 2, "scale": 0.0, "unsent": {}, "velocity": {}},
    ],
)
def test_what_is_no_state_changes_nothing(state: dict[str, Any]) -> None:
    residuals = filled()
    with pytest.raises(ValueError, match=r"state_dict\(\)|scale"):
        residuals.load_state_dict(state, SIZES, 2)
    assert residuals.held((A, B), CPU).unsent.tolist() == [1, 2, 3, 4, 5]
