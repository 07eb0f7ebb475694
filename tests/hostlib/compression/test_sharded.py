"""FSDP2's communicators in jobs of two and four ranks over gloo."""

from pathlib import Path
from typing import Any

import pytest

from tests.hostlib.compression.job import run_job

pytestmark = pytest.mark.slow

TOLERATED = {
    "fp32": {"None": 0.0, "torch.bfloat16": 0.01, "torch.float16": 0.001},
    "fp16": {"None": 0.001, "torch.bfloat16": 0.01, "torch.float16": 0.001},
    "int8": {"None": 0.03, "torch.bfloat16": 0.03, "torch.float16": 0.03},
}
"""Largest difference over the largest gradient, by precision and reduce dtype: of the order of their rounding."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks have seen."""
    return run_job("sharded", "all_of_it", 2, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("dtype", ["None", "torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize("operation", ["AVG", "SUM", "PREMUL_SUM"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_operation_and_reduce_dtype_are_honoured(
    ranks: list[dict[str, Any]], dtype: str, precision: str, operation: str
) -> None:
    for rank in ranks:
        difference = rank["reduced"][f"{dtype} {precision} {operation}"]
        assert difference <= TOLERATED[precision][dtype]


def test_precisions_are_really_sent(ranks: list[dict[str, Any]]) -> None:
    assert all(ranks[0]["reduced"][f"None {precision} AVG"] > 0 for precision in ("fp16", "int8"))


def test_what_a_sparse_step_leaves_out_comes_later(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        found = rank["sparse"]
        assert found["difference"] < 0.05
        assert found["modules"] == [["2"], ["(root)"], ["0"]]
        assert found["saved_bytes"] > 0


def test_what_rounding_takes_comes_later_where_residuals_are_allowed(ranks: list[dict[str, Any]]) -> None:
    """A step of 4 bits is a seventh; of forty steps only the last one's rounding is missing."""
    for rank in ranks:
        assert 0 < rank["rounded"]["difference"] < 0.01


@pytest.mark.parametrize(("precision", "tolerated"), [("fp32", 1e-5), ("fp16", 1e-3), ("int8", 0.02)])
def test_a_dense_step_sends_what_sparse_ones_have_left_out(
    ranks: list[dict[str, Any]], precision: str, tolerated: float
) -> None:
    for rank in ranks:
        found = rank["turned"][precision]
        assert found["difference"] < tolerated
        assert {round(ratio, 1) for ratio in found["ratios"]} == {0.1, 1.0}
        assert found["ratios"][-1] == 1


def test_memory_of_unsharded_residuals_is_told(ranks: list[dict[str, Any]]) -> None:
    found = ranks[0]["sparse"]
    assert found["notes"] == ["residuals of unsharded gradients will take 0.025 MB on each rank"]
    assert found["residual_bytes"] == pytest.approx(4 * found["elements"], rel=0.05)  # shards are padded


@pytest.mark.parametrize("choice", ["int8", "sparse"])
def test_what_is_not_finite_is_passed_on_and_stays_in_no_residual(ranks: list[dict[str, Any]], choice: str) -> None:
    for rank in ranks:
        found = rank["not_finite"][choice]
        assert not found["is_finite"]
        assert found["residuals_are_finite"]
        assert found["passed_on"] == {"NaN or infinity": 3}  # modules


def test_errors_name_the_module(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["refused"] == [
        ["ratio: expected 1, as sparse gradients are not opted for, got 0.1", "This was the gradient of module 2."],
        ["rank: expected 0, as a module's shards are no matrices, got 2", "This was the gradient of module 2."],
        ["mode: paper is sparse, and is_sparse_sharded is off"],
        ["momentum: it corrects what sparse gradients leave out, and is_sparse_sharded is off"],
        ["low_rank: it is for DistributedDataParallel, as FSDP2's shards are no matrices"],
    ]


def test_an_all_reduce_hook_reduces_over_copies(tmp_path: Path) -> None:
    for rank in run_job("sharded", "replicated", 4, tmp_path):
        assert rank["fp32"] == 0
        assert 0 < rank["fp16"] < 0.001
        assert 0 < rank["int8"] < 0.03
        assert rank["refused"].startswith("replicas: (root) is on a mesh of 2 dimensions")


def test_shards_inside_of_copies_are_compressed_and_copies_are_not(tmp_path: Path) -> None:
    """Four ranks on a mesh of two copies: what shards send each other is compressed, then PyTorch adds up copies."""
    for rank in run_job("sharded", "inside_copies", 4, tmp_path):
        assert rank["fp32"] == 0
        assert 0 < rank["fp16"] < 0.001
        assert 0 < rank["int8"] < 0.03
        assert rank["modules"] == [["2"], ["(root)"], ["0"]]
        # The first of three steps is fp32: nothing is known of the modules then.
        assert rank["fp16 bytes"] < 0.7 * rank["fp32 bytes"]
        assert rank["int8 bytes"] < 0.6 * rank["fp32 bytes"]
        assert rank["sparse"]["difference"] < 0.05
        assert rank["sparse"]["saved_bytes"] > 0
