"""The communication hook in jobs of two and three ranks over gloo."""

from pathlib import Path
from typing import Any

import pytest

from tests.hostlib.compression.job import run_job

pytestmark = pytest.mark.slow

TOLERATED = 0.01
"""What counts as sent, and what TCP says, may differ by this share."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What three ranks have seen."""
    return run_job("ddp", "all_of_it", 3, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", ["fp32", "bf16", "fp16", "fp64", "static graph", "views", "unused parameters"])
def test_dense_gradients_are_those_of_ddp_bit_by_bit(ranks: list[dict[str, Any]], case: str) -> None:
    for rank in ranks:
        found = rank["identical"][case]
        assert found["with"] == found["without"]
        assert found["steps"] == len(found["with"])  # none for a backward pass under no_sync


def test_there_are_buckets_of_different_sizes(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["identical"]["fp32"]["buckets"] == [4810, 1344]


def test_types_that_cannot_be_compressed_are_passed_on(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["identical"]["fp64"]["passed on"] == {"torch.float64": 7}  # one bucket, then two in each step
    assert ranks[0]["identical"]["fp32"]["passed on"] == {}


def test_sparse_gradients_are_passed_on_by_name(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        plain, with_hook = rank["sparse_gradients"]["gradients"]
        assert with_hook == plain
        assert rank["sparse_gradients"]["passed_on"] == {"sparse gradient of 0.weight": 3}


def test_momentum_correction_is_the_optimizers_momentum_where_all_is_sent(ranks: list[dict[str, Any]]) -> None:
    assert all(rank["momentum"] < 1e-6 for rank in ranks)


def test_residuals_follow_a_scaler(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        without, scaled = rank["scaled"]
        assert scaled == without  # powers of two change no bit


def test_ranks_with_less_data_join(ranks: list[dict[str, Any]]) -> None:
    assert [rank["uneven"]["steps"] for rank in ranks] == [6, 6, 6]
    assert len({rank["uneven"]["digest"] for rank in ranks}) == 1


@pytest.mark.parametrize("choice", ["int8", "gathered", "scattered", "pruned", "low rank"])
def test_what_is_not_finite_is_passed_on_by_all_ranks_and_stays_in_no_residual(
    ranks: list[dict[str, Any]], choice: str
) -> None:
    for rank in ranks:
        found = rank["not_finite"][choice]
        assert found["is_lost"]  # every rank has it in its gradient, for a scaler to see
        assert found["passed_on"] == {"NaN or infinity": 1}
        assert found["changed"] < 1e-6
        assert found["residuals_are_finite"]
        assert found["after_is_finite"]
    assert len({rank["not_finite"][choice]["digest"] for rank in ranks}) == 1


@pytest.mark.parametrize("choice", ["fp32", "fp16"])
def test_an_all_reduce_has_what_is_not_finite_on_all_ranks_at_once(ranks: list[dict[str, Any]], choice: str) -> None:
    for rank in ranks:
        assert rank["not_finite"][choice]["is_lost"]
        assert rank["not_finite"][choice]["after_is_finite"]
    assert ranks[1]["not_finite"]["fp16"]["passed_on"] == {"NaN or infinity": 1}


@pytest.mark.parametrize("case", ["plain", "bf16", "two forward passes", "NaN", "scaler", "checkpoint", "in flight"])
def test_nothing_is_lost_of_a_remainder(ranks: list[dict[str, Any]], case: str) -> None:
    for rank in ranks:
        found = rank["remainders"][case]
        assert found["missing"] < (0.01 if case == "bf16" else 1e-5)
        assert found["remainder"] == 0.5
        if case != "bf16":  # which has one bucket
            assert found["ratio"] == pytest.approx((4810 * 0.1 + 1344 * 0.6) / 6154)


def test_low_rank_leaves_a_remainder_of_low_rank(ranks: list[dict[str, Any]]) -> None:
    """The last bucket is a matrix of 64 x 20 and a vector; the other one has 64 x 64, 10 x 64 and two vectors."""
    first, last, later = 74 + 2 * (128 + 74), 64 + 2 * 84, 64 + 84
    for rank in ranks:
        found = rank["remainders"]["low rank"]
        assert found["missing"] < 1e-5
        assert found["remainder"] == pytest.approx(later / 1344)
        assert found["ratio"] == pytest.approx((first + last + later) / 6154)


def test_all_ranks_choose_the_same_though_one_has_a_slow_link(ranks: list[dict[str, Any]]) -> None:
    choices = [rank["slowed"]["choices"] for rank in ranks]
    assert choices[1:] == choices[:1] * (len(ranks) - 1)
    assert len({str(each) for each in choices[0]}) > 2  # they were not always the same
    assert any(ratio < 1 for step in choices[0] for ratio, _, _ in step)
    assert all(rank["slowed"]["malformed"] == 0 for rank in ranks)
    assert len({rank["slowed"]["reason"] for rank in ranks}) == 1


@pytest.mark.parametrize(
    "choice", ["fp32", "bf16", "fp16", "int8", "gathered", "gathered-int8", "scattered", "pruned", "low rank"]
)
def test_tcp_has_sent_as_many_bytes_as_are_counted(ranks: list[dict[str, Any]], choice: str) -> None:
    for rank in ranks:
        counted, of_tcp = rank["bytes_sent"][choice]
        assert counted == pytest.approx(of_tcp, rel=TOLERATED)
        assert counted > 1_000_000


def test_training_converges_as_without_compression(tmp_path: Path) -> None:
    ranks = run_job("ddp", "converge", 2, tmp_path)
    plain = sum(rank["plain"]["loss"] for rank in ranks)
    untrained = 2 * 2.3  # of ten classes
    for name in ranks[0]:
        loss = sum(rank[name]["loss"] for rank in ranks)
        # Of pruned gradients those of small weights wait, in the paper's way, until the weights are larger.
        share = 0.2 if name == "pruned" else 0.05
        assert loss < plain + share * (untrained - plain), name
        assert ranks[0][name]["digests"] == ranks[1][name]["digests"], name
    assert ranks[0]["fp32"]["digests"] == ranks[0]["plain"]["digests"]
    for name in ("gathered", "scattered"):
        found = ranks[0][name]
        assert found["sent_bytes"] < 0.3 * (found["sent_bytes"] + found["saved_bytes"])
        assert {ratio for ratio, _, _ in found["choices"]} == {0.1}
