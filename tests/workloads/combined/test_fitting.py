"""What does not divide is named, with the key and the layer, and nothing is expanded."""

from typing import Any

import pytest

from tests.workloads.combined.builders import EXPERTS, H100, MEASURED
from workloads.validation import find_problems


def problems(num_hosts: int = 4, **keys: Any) -> list[str]:
    workload = {"type": "combined", "model": MEASURED, "nvlink_gbps": 3600, "batch": 32} | keys
    workload = {key: value for key, value in workload.items() if value is not None}
    job = {"name": "j", "gpus": 8 * num_hosts, "gpus_per_host": 8, "iterations": 1, "workload": workload}
    topology = {"kind": "star", "hosts": num_hosts, "host_link_gbps": 400}
    document = {"name": "s", "topology": topology, "jobs": [job]}
    return [problem.text_in(document).removeprefix("jobs[0] j, workload") for problem in find_problems(document)]


def test_a_job_that_divides_has_no_problems() -> None:
    assert problems(tensor=8, pipeline=2) == []
    assert problems(tensor=4, pipeline=8) == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tensor": 3}, ": expected GPUs that are a multiple of tensor x context x pipeline, 3 x 1 x 1, got 32"),
        (
            {"batch": 30, "tensor": 8},
            ".batch: expected a multiple of 4, for 4 replicas with micro-batches of 1, got",
        ),
        ({"tensor": 16}, ".tensor: expected a divisor of the 8 heads of layer 'block attention' of measured, got 16"),
        ({"context": 3}, ".context: expected a divisor of the 32 tokens of measured, got 3"),
        ({"expert": 2}, ".expert: expected 1: measured has no layer that it divides, got 2"),
        (
            {"expert": 16, "model": EXPERTS},
            ".expert: expected a divisor of the 8 experts of layer 'block moe' of experts, got 16",
        ),
        ({"expert": 8, "tensor": 8, "model": EXPERTS}, ".expert: expected a divisor of context x data, 4, got 8"),
        ({"pipeline": 16}, ".pipeline: expected at most the 8 blocks of measured that compute, for pipeline x chunks"),
        (
            {"pipeline": 3, "tensor": 4},
            ": expected GPUs that are a multiple of tensor x context x pipeline, 4 x 1 x 3, got 32",
        ),
        ({"model": "gpt"}, ".model: expected a public model or a description, whose layers are divided, got gpt"),
        ({"model": "llama-3-8b"}, ".device: missing; the model llama-3-8b has layers without durations and no device"),
        ({"nvlink_gbps": None}, ".nvlink_gbps: missing; needed for a device that is not one of the table"),
        ({"chunks": 3, "schedule": "zero_bubble_v"}, ".chunks: expected 2 for schedule zero_bubble_v, got 3"),
        ({"model": "resnet-50", "device": H100, "tensor": 2}, ".tensor: expected 1: resnet-50 has no layer that it"),
        ({"zero": 4}, ".zero: expected less than or equal to 3, got 4"),
        (
            {"batch": 2**20},
            ".micro_batch: expected one that makes batch / micro_batch x pipeline x chunks, 1,048,576, at",
        ),
        ({"batch": -1}, ".batch: expected greater than 0, got -1"),
    ],
)
def test_what_does_not_divide_is_named(keys: dict[str, Any], message: str) -> None:
    assert any(found.startswith(message) for found in problems(**keys)), problems(**keys)
