"""``trainyard advise``: of a scenario's job, and of a model on a cluster."""

import json
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.trainyard.cli.conftest import Trainyard
from tests.workloads.combined.test_timeline import scenario
from trainyard.scenarios import document_of

CLUSTER = str(ROOT / "docs" / "examples" / "clos.yaml")
MODEL = ("vit-l-16", "--topology", CLUSTER, "--batch", "64", "--device", "h100", "--efficiency", "0.4")


def test_a_job_of_a_scenario_is_advised(trainyard: Trainyard, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(yaml.safe_dump(document_of(scenario(tensor=4, pipeline=2))), encoding="utf-8")
    shown = trainyard("advise", path, "--simulate", "1", "--json")
    assert shown.exit_code == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert (document["given"]["tensor"], document["given"]["pipeline"], document["given"]["data"]) == (4, 2, 2)
    best = document["alternatives"][0]
    assert best["simulated_s"] <= document["given"]["simulated_s"] * 1.01
    time = document["given_time"]
    total_s = time["compute_s"] + time["bubble_s"] + sum(time["exposed_s"].values())
    assert total_s == pytest.approx(document["given"]["iteration_s"])
    table = trainyard("advise", path, "--simulate", "1")
    assert "tensor 4 x pipeline 2 x data 2, micro-batch 1, 1f1b" in table.stdout
    assert "pipeline bubble" in table.stdout
    assert "Busiest links of the best" in table.stdout


def test_a_model_on_a_cluster_is_advised_and_keys_are_kept(trainyard: Trainyard) -> None:
    parallelism = ("--parallelism", "tensor=4,zero=1,buckets=4", "--keep", "tensor")
    shown = trainyard("advise", *MODEL, *parallelism, "--simulate", "0", "--json")
    assert shown.exit_code == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["gpus"] == 32
    assert document["memory_bytes"] == 80e9
    assert {each["tensor"] for each in document["alternatives"]} == {4}
    rows = trainyard("advise", *MODEL, "--simulate", "0", "-o", "csv").stdout.splitlines()
    assert rows[0].startswith("rank,tensor,context,")
    assert rows[1].startswith("1,")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*MODEL, "--parallelism", "tensor=3"), "--parallelism: tensor: expected a divisor of the 16 heads"),
        ((*MODEL, "--parallelism", "tensors=4"), "--parallelism: tensors: expected one of all_reduce, buckets"),
        ((*MODEL, "--parallelism", "tensor"), "--parallelism: expected KEY=VALUE with commas between, got 'tensor'"),
        ((*MODEL, "--keep", "batch"), "--keep: expected some of tensor, context"),
        ((*MODEL, "--job", "job"), "--job: expected a scenario file without --topology"),
        ((*MODEL, "--gpus", "4096"), "--gpus: "),
        ((*MODEL, "--gpus", "12"), "--gpus: expected a multiple of gpus_per_host, which is 8, got 12"),
        ((*MODEL, "--parallelism", "tensor=16,pipeline=4"), "--parallelism: expected GPUs that are a multiple of"),
        ((*MODEL[:-1], "40"), "--efficiency: expected less than or equal to 1"),
        ((*MODEL[:5],), "--device: missing"),
        ((*MODEL[:-2],), "--efficiency: missing"),
        ((*MODEL[:3], "--device", "h100"), "--batch: missing"),
        (("vit", *MODEL[1:]), "vit: expected a file, or one of llama-3-8b"),
        ((str(ROOT / "docs" / "examples" / "two-jobs.yaml"),), "--job: expected a name, because 0 jobs"),
        ((str(ROOT / "docs" / "examples" / "two-jobs.yaml"), "--gpus", "8"), "--gpus: expected --topology and a model"),
        ((*MODEL, "--memory-gb", "0.1"), "vit-l-16: every parallelism needs more memory than a GPU's 0 GB"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(trainyard: Trainyard, words: tuple[str, ...], message: str) -> None:
    refused = trainyard("advise", *words)
    assert refused.exit_code == 2
    assert message in refused.stderr, refused.stderr
