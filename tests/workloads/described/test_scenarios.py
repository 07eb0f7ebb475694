"""Public and described models in the workloads of a scenario, by name, by file and in place."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import ScenarioError, load_scenario

DEVICE = {"name": "h100", "efficiency": 0.4}
LLAMA = {"model": "llama-3-8b", "samples_per_gpu": 1, "device": DEVICE}
MINE = {
    "name": "mine",
    "tokens": 32,
    "device": {"flops_per_s": 1e12, "efficiency": 1.0},
    "layers": [
        {"type": "embedding", "vocabulary": 100, "width": 64},
        {"type": "block", "repeat": 4, "layers": [{"type": "attention", "heads": 4}, {"type": "mlp", "hidden": 256}]},
        {"type": "linear", "name": "head", "outputs": 100},
    ],
}


def written(tmp_path: Path, *workloads: dict[str, Any]) -> Path:
    jobs = [
        {"name": f"job-{number}", "hosts": ["h0", "h1"], "gpus_per_host": 4, "duration_s": 1, "arrival_s": number * 50}
        | {"workload": workload}
        for number, workload in enumerate(workloads)
    ]
    path = tmp_path / "scenario.yaml"
    topology = {"kind": "star", "hosts": 2, "host_link_gbps": 400}
    path.write_text(yaml.safe_dump({"name": "s", "topology": topology, "jobs": jobs}), encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(MINE), encoding="utf-8")
    return path


def only_job(tmp_path: Path, workload: dict[str, Any]) -> TrainingJob:
    scenario = load_scenario(written(tmp_path, workload))
    (job,) = training_jobs(scenario, scenario.topology.build())
    return job


def sent_bytes(job: TrainingJob, source: str = "h0") -> float:
    flows = (flow for group in job.graph.flow_groups for flow in group.flows)
    return sum(flow.size_bytes for flow in flows if flow.source_host == source)


def test_data_parallel_llama_computes_its_flops_and_reduces_its_parameters(tmp_path: Path) -> None:
    job = only_job(tmp_path, {"type": "dp", "samples_per_gpu": 2} | LLAMA | {"samples_per_gpu": 2})
    assert job.profile.compute_s == pytest.approx(2 * 8192 * 5.147e10 / (989e12 * 0.4), rel=1e-4)
    assert sent_bytes(job) == pytest.approx(2 * 8_030_261_248)  # a ring of two hosts: all gradients of 2 bytes


def test_a_file_and_a_mapping_are_the_same_model(tmp_path: Path) -> None:
    named, inline = (
        only_job(tmp_path, {"type": "fsdp", "samples_per_gpu": 3, "model": model}) for model in ("mine.yaml", MINE)
    )
    assert named.graph == inline.graph
    assert sum(task.name.startswith("forward") for task in named.graph.tasks if hasattr(task, "name")) == 5


@pytest.mark.parametrize(
    ("workload", "bytes_of_h0"),
    [
        # 8 GPUs with one row of 32 tokens each, 2 bytes; what travels is 64 wide, 2 (H - 1) / H of it, 4 times a layer.
        ({"type": "tp"}, 8 * 32 * 64 * 2 * 4 * 4),
        # Keys and values of one block of two, once forward, twice backward, in each layer.
        ({"type": "cp"}, 8 * 32 * 64 * 2 * 2 / 2 * 3 * 4),
        # The activations go forward, the gradients come from h1.
        ({"type": "pp", "micro_batches": 4}, 8 * 32 * 64 * 2),
    ],
    ids=["tp", "cp", "pp"],
)
def test_activations_follow_from_the_layers(workload: dict[str, Any], bytes_of_h0: float, tmp_path: Path) -> None:
    job = only_job(tmp_path, workload | {"model": "mine.yaml", "samples_per_gpu": 1})
    assert sent_bytes(job) == pytest.approx(bytes_of_h0)


def test_experts_get_the_tokens_that_are_routed_to_them(tmp_path: Path) -> None:
    experts = {"type": "moe", "experts": 8, "active": 2, "hidden": 64}
    layers = [MINE["layers"][0], experts]
    job = only_job(tmp_path, {"type": "moe", "model": MINE | {"layers": layers}, "samples_per_gpu": 1})
    # Two experts for each of a host's 4 x 32 tokens, half of them at the other host; there and back, in both passes.
    assert sent_bytes(job) == pytest.approx(4 * 32 * 64 * 2 * 2 / 2 * 4)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"type": "dp", "model": "llama-3-8b", "device": DEVICE}, "workload.samples_per_gpu: missing; the model llama"),
        ({"type": "dp", "model": "llama-3-8b", "samples_per_gpu": 1}, "workload.device: missing; the model llama-3-8b"),
        ({"type": "dp", "model": "bert", "samples_per_gpu": 1}, "workload.samples_per_gpu: expected no such key with"),
        ({"type": "moe"} | LLAMA, "workload.model: expected a model with layers with experts, llama-3-8b has none"),
        (
            {"type": "tp", "layers": 31} | LLAMA,
            "workload.layers: expected no such key, or the 32 of llama-3-8b, got 31",
        ),
        ({"type": "tp", "model": "bert"}, "workload.layers: missing; the model bert needs this key"),
        ({"type": "fsdp", "model": "gpt"}, "workload.layer_groups: missing; the model gpt needs this key"),
        ({"type": "dp", "model": "nobert"}, "workload.model: expected one of gpt, bert, resnet, llama-3-8b,"),
        ({"type": "dp", "model": "none.yaml"}, "workload.model: expected a model or a file of one; "),
        ({"type": "dp", "model": 7}, "workload.model: expected a mapping"),
        (
            {"type": "dp", "samples_per_gpu": 1, "model": MINE | {"tokens": 0}},
            "workload.model.tokens: expected greater",
        ),
    ],
)
def test_what_does_not_fit_a_model_is_named(workload: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(written(tmp_path, workload))
    assert f"jobs[0] job-0, {message}" in str(caught.value)


def test_a_mistake_in_a_file_is_told_with_that_file(tmp_path: Path) -> None:
    path = written(tmp_path, {"type": "dp", "model": "wrong.yaml", "samples_per_gpu": 1})
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(MINE | {"layers": [MINE["layers"][0], {"type": "mlp", "hidden": -1}]}))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value) == f"{wrong}: layers[1] mlp, hidden: expected greater than 0, got -1"


def test_the_hash_of_a_scenario_covers_its_models(tmp_path: Path) -> None:
    from workloads.loading import read_scenario_document

    path = written(tmp_path, {"type": "dp", "model": "mine.yaml", "samples_per_gpu": 1})
    before = read_scenario_document(path).sha256
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(MINE | {"element_bytes": 4}), encoding="utf-8")
    assert read_scenario_document(path).sha256 != before
