"""Low rank in jobs of three ranks over gloo, beside PyTorch's own PowerSGD hook."""

from typing import Any

import pytest

from tests.hostlib.compression.job import run_job

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What three ranks have seen."""
    return run_job("low_rank", "all_of_it", 3, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize(("rank_of_matrices", "share"), [("1", 0.0689), ("2", 0.1154), ("4", 0.2083)])
def test_gradients_are_those_of_pytorchs_hook(ranks: list[dict[str, Any]], rank_of_matrices: str, share: float) -> None:
    """Both start from the same vectors; the first two steps are dense in both. The rest is rounding."""
    for rank in ranks:
        found = rank["beside_pytorch"][rank_of_matrices]
        assert found["ratios"] == pytest.approx([1.0, 1.0] + [share] * 10, abs=1e-4)
        assert max(found["gradients"]) < 1e-4
        assert found["weights"] < 1e-4


@pytest.mark.parametrize("rank_of_matrices", ["1", "2", "4"])
def test_what_is_left_is_the_same_in_the_mean_and_less_on_each_rank(
    ranks: list[dict[str, Any]], rank_of_matrices: str
) -> None:
    """Ranks keep what they have not sent, where PyTorch's keep how far they are from the mean besides."""
    for rank in ranks:
        found = rank["beside_pytorch"][rank_of_matrices]
        assert found["left"] < 1e-3
        assert found["norm"] > 0.1
        assert found["own norm"] < found["their norm"]


def test_budget_chooses_it_alike_on_all_ranks(ranks: list[dict[str, Any]]) -> None:
    """The slowest rank has 1 Mbit/s, which carries nothing of half of the elements in time."""
    found = [rank["chosen"] for rank in ranks]
    for each in found[1:]:
        assert each["choices"] == found[0]["choices"]
        assert each["digest"] == found[0]["digest"]
        assert each["reason"] == found[0]["reason"]
    assert "Sent as low rank: " in found[0]["reason"]
    last = found[0]["choices"][-1]
    assert any(rank for rank, _, _, _ in last)
    assert all(ratio < 0.2 for rank, ratio, _, _ in last if rank)
    for each in found:
        assert sum(each["losses"][-5:]) < sum(each["losses"][:5])
