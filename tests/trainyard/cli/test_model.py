"""``trainyard model``: what a model has, and ``check`` of a model's file."""

import json
from pathlib import Path

from tests.docs.pages import ROOT
from tests.trainyard.cli.conftest import Trainyard

MODEL = str(ROOT / "docs" / "examples" / "my-model.yaml")


def test_a_public_model_is_shown_with_equal_blocks_as_one(trainyard: Trainyard) -> None:
    shown = trainyard("model", "deepseek-v3", "--json")
    assert shown.exit_code == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["parameters"] == 671_026_404_352
    assert [(row["block"], row["times"]) for row in document["blocks"]] == [
        ("embedding", 1),
        ("dense block 0", 3),
        ("block 0", 58),
        ("last norm", 1),
        ("head", 1),
    ]
    assert sum(row["times"] * row["parameters"] for row in document["blocks"]) == document["parameters"]
    assert sum(row["times"] * row["forward_flops"] for row in document["blocks"]) == document["forward_flops"]


def test_a_model_of_a_file_is_shown_and_checked(trainyard: Trainyard) -> None:
    shown = trainyard("model", MODEL)
    assert shown.exit_code == 0, shown.stderr
    assert "my-model: 1,665,763,328 parameters" in shown.stdout
    assert trainyard("check", MODEL).stdout == "ok\n"


def test_what_is_wrong_with_a_model_is_told_and_exits_with_2(trainyard: Trainyard, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(Path(MODEL).read_text(encoding="utf-8").replace("heads: 16", "heads: 15"), encoding="utf-8")
    for command in ("model", "check"):
        refused = trainyard(command, path)
        assert refused.exit_code == 2
        assert (
            "layers[1] block, layers[1] attention, heads: expected heads that divide the width 2048" in refused.stderr
        )


def test_what_is_neither_a_model_nor_a_file_is_told(trainyard: Trainyard, tmp_path: Path) -> None:
    assert "none.yaml: cannot be read" in trainyard("model", tmp_path / "none.yaml").stderr
    refused = trainyard("model", "llama-4")
    assert refused.exit_code == 2
    assert "llama-4: expected a file, or one of llama-3-8b, llama-3-70b," in refused.stderr
