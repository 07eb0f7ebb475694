"""Every collective of every parallelism is seen, once, and none is hurt by being seen."""

from pathlib import Path
from typing import Any

import pytest

from tests.hostlib.torch.gloo_ranks import run_ranks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, dict[str, int]]]]:
    return run_ranks("counted_parallelism", 2, tmp_path_factory.mktemp("counts"))


@pytest.mark.parametrize("parallelism", ["DDP", "FSDP2", "tensor", "all-to-all", "functional", "others"])
def test_collectives_are_those_that_pytorch_s_debug_mode_counts(counts: list[Any], parallelism: str) -> None:
    for rank in counts:
        seen, counted = rank[parallelism]["seen"], rank[parallelism]["counted"]
        seen.pop("barrier", None)  # which it does not count
        assert counted
        assert seen == counted


@pytest.mark.parametrize(
    ("parallelism", "operations"),
    [
        ("DDP", {"allreduce_"}),
        ("FSDP2", {"_allgather_base_", "_reduce_scatter_base_"}),
        ("tensor", {"allreduce_"}),
        ("all-to-all", {"alltoall_base_", "alltoall_"}),
    ],
)
def test_each_parallelism_has_its_operations(counts: list[Any], parallelism: str, operations: set[str]) -> None:
    assert set(counts[0][parallelism]["seen"]) == operations


def test_a_1f1b_pipeline_sends_each_micro_batch_forth_and_back(counts: list[Any]) -> None:
    for rank in counts:
        assert rank["1F1B"]["seen"] == {"send": 4, "recv_": 4}


def test_compiled_code_is_seen_as_it_would_be_without_compiling(counts: list[Any]) -> None:
    for rank in counts:
        assert rank["compiled"]["seen"] == {"allreduce_": 1}


def test_a_mistake_of_ours_ends_the_observation_and_not_the_job(tmp_path: Path) -> None:
    for rank in run_ranks("raising_observer", 2, tmp_path):
        assert rank == {"sums": [0, 2, 4, 6, 8, 10], "told": 3, "collectives": 2}
