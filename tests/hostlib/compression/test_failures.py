"""A rank that dies in a collective: the others get PyTorch's error, and end."""

from pathlib import Path

import pytest

from tests.hostlib.compression.job import run_ranks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("how", "collective"), [("exit", "all-reduce"), ("raise", "reduce-scatter")])
def test_the_others_get_torchs_error_and_end(tmp_path: Path, how: str, collective: str) -> None:
    *others, last = run_ranks("dying", "main", 3, tmp_path, how=how, collective=collective)
    assert last.status == {"exit": 3, "raise": 1}[how]
    for rank in others:
        assert rank.status == 1
        assert "RuntimeError" in rank.errors
        assert "gloo" in rank.errors
        assert rank.result is None
