"""Memory of a GPU, against the formulas of the papers that it comes from."""

import pytest

from tests.workloads.combined.builders import H100, workload
from workloads.combined.memory import ModelMemory, most_in_flight
from workloads.combined_workload import Recomputation
from workloads.pipeline_order import PipelineSchedule

HEADS, WIDTH, TOKENS, LAYERS = 16, 1024, 2048, 4
GPT = {
    "name": "gpt",
    "tokens": TOKENS,
    "layers": [
        {"type": "embedding", "vocabulary": 50000, "width": WIDTH},
        {
            "type": "block",
            "repeat": LAYERS,
            "layers": [
                {"type": "norm"},
                {"type": "attention", "heads": HEADS, "stored_scores": True},
                {"type": "norm"},
                {"type": "mlp", "hidden": 4 * WIDTH},
            ],
        },
    ],
}
KEYS = {"model": GPT, "device": H100, "batch": 8}


def activations_bytes(num_gpus: int, **keys: object) -> float:
    of = workload(**KEYS | keys)
    return ModelMemory(of).use(of, num_gpus).activations_bytes


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_activations_are_those_of_korthikanti_without_dropout(tensor: int) -> None:
    # Equation 2, sbh(10 + 24/t + 5as/(ht)), less the masks (2sbh, and as²b twice) and the output (as²b) of dropout.
    s, h, a, t = TOKENS, WIDTH, HEADS, tensor
    layer = s * h * (8 + 24 / t)
    words = s * 2
    assert activations_bytes(8, tensor=tensor, recompute="selective") == pytest.approx(LAYERS * layer + words, rel=1e-3)
    scores = 2 * a * s * s / t
    assert activations_bytes(8, tensor=tensor) == pytest.approx(LAYERS * (layer + scores), rel=1e-3)


def test_with_sequence_parallelism_tensor_divides_all() -> None:
    layer = TOKENS * WIDTH * 32 / 4
    kept = activations_bytes(8, tensor=4, recompute="selective", sequence=True)
    assert kept == pytest.approx(LAYERS * layer, rel=1e-3)


def test_with_full_recomputation_a_block_keeps_what_it_gets_and_one_is_made_again() -> None:
    layer = TOKENS * WIDTH * 32
    kept = activations_bytes(8, recompute="full")
    assert kept == pytest.approx(LAYERS * TOKENS * WIDTH * 2 + layer, rel=1e-3)


def test_parameters_and_states_are_those_of_zero() -> None:
    parameters = workload(**KEYS).description.parameters
    expected = {0: (2, 2, 12), 1: (2, 2, 12 / 8), 2: (2, 2 / 8, 12 / 8)}
    for zero, factors in expected.items():
        of = workload(**KEYS, zero=zero)
        use = ModelMemory(of).use(of, 8)
        found = use.parameters_bytes, use.gradients_bytes, use.optimizer_bytes
        assert found == pytest.approx([factor * parameters for factor in factors])
    of = workload(**KEYS, zero=3)
    use = ModelMemory(of).use(of, 8)
    assert parameters * 2 / 8 < use.parameters_bytes < parameters * 2


def test_recomputation_and_zero_never_need_more() -> None:
    of = workload(**KEYS, tensor=2, pipeline=2)
    memory = ModelMemory(of)
    by_zero = [memory.use(of.model_copy(update={"zero": zero}), 8).total_bytes for zero in range(4)]
    assert by_zero == sorted(by_zero, reverse=True)
    by_recompute = [memory.use(of.model_copy(update={"recompute": each}), 8).total_bytes for each in Recomputation]
    assert by_recompute == sorted(by_recompute, reverse=True)


def test_schedules_keep_as_many_micro_batches_as_their_papers_say() -> None:
    assert most_in_flight(PipelineSchedule.GPIPE, 0, 4, 16, 1) == 16
    for place in range(4):
        assert most_in_flight(PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, place, 4, 16, 1) == 4 - place
    # Interleaved: (p - 1) * 2 + (v - 1) * p + 1 passes over chunks on the first place (Megatron-LM, SC 2021).
    assert most_in_flight(PipelineSchedule.INTERLEAVED, 0, 4, 16, 2) == 3 * 2 + 4 + 1
    # The V of zero bubbles: as much as 1F1B, in halves, on every place alike.
    assert {most_in_flight(PipelineSchedule.ZERO_BUBBLE_V, place, 4, 16, 2) for place in range(4)} == {8}
