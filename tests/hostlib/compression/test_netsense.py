"""The one line: what it takes and refuses, a world of one, checkpoints."""

from pathlib import Path
from typing import Any

import pytest

from hostlib.compression import NetSense
from tests.hostlib.compression.job import run_job


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks have seen."""
    return run_job("attaching", "all_of_it", 2, tmp_path_factory.mktemp("ranks"))


def test_nothing_is_told_before_a_model_is_attached() -> None:
    net = NetSense()
    assert net.stats().steps == 0
    assert net.stats().reason == "Nothing is attached."
    with pytest.raises(RuntimeError, match="attach a model first"):
        net.state_dict()
    with pytest.raises(RuntimeError, match="attach a model first"):
        net.direct(1e9, None)


@pytest.mark.parametrize(("options", "named"), [({"mode": "best"}, "mode"), ({"momentum": 1.0}, "momentum")])
def test_options_that_make_no_sense_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        NetSense(**options)


@pytest.mark.slow
def test_a_world_of_one_trains_as_it_would(tmp_path: Path) -> None:
    (rank,) = run_job("attaching", "alone", 1, tmp_path)
    plain, with_hook = rank["digests"]
    assert with_hook == plain
    assert rank["notes"] == ["there is one rank, which has nobody to send to"]
    assert rank["sent_bytes"] == 0


@pytest.mark.slow
def test_what_cannot_be_attached_is_refused(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        errors = rank["refused"]
        assert errors["no model"] == (
            "TypeError: model: expected a DistributedDataParallel or a module after fully_shard(), got Sequential"
        )
        assert errors["replicas"].startswith("ValueError: replicas: they are for FSDP2")
        assert errors["settings"].startswith("ValueError: ranks have different settings")
        assert "attached already" in errors["twice"]
        assert "register_comm_hook" in errors["two hooks"]


@pytest.mark.slow
def test_residuals_go_on_from_a_checkpoint(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        found = rank["resumed"]
        assert found["parameters"] == ["0.bias", "0.weight", "2.bias", "2.weight", "4.bias", "4.weight"]
        assert found["lost"] == []
        assert found["same"]


@pytest.mark.slow
def test_a_changed_world_size_resets_them_and_says_so(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        found = rank["resumed"]
        assert found["reset"] == ["unsent gradients are reset: they were of 8 ranks, and there are 2"]
        assert found["notes"] == found["reset"]
        assert found["left"] == []
