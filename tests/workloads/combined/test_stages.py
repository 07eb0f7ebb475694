"""Stages: where models are cut, and what passes compute and send, against counts by hand."""

from typing import Any

import pytest

from tests.workloads.combined.builders import EXPERTS, H100, LAYERS, MEASURED, TOKENS, WIDTH, workload
from workloads.combined.nccl import Collective
from workloads.combined.stages import Communication, Dimension, StagePasses, cut
from workloads.described.catalogue import PublicModel, public_model
from workloads.described.devices import Device
from workloads.described.timing import total_times


def seconds(steps: object) -> float:
    return sum(step for step in steps if isinstance(step, float))  # type: ignore[attr-defined]


def communications(steps: object) -> list[Communication]:
    return [step for step in steps if isinstance(step, Communication)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("num_stages", [1, 2, 3, 5, 16, 33])
def test_stages_have_all_blocks_in_order_and_each_computes(num_stages: int) -> None:
    model, device = public_model(PublicModel.LLAMA_3_8B), Device.model_validate(H100)
    stages = cut(model, device, num_stages)
    assert [block for stage in stages for block in stage] == list(model.blocks)
    times = [total_times([part for block in stage for part in block.parts], device).both_s for stage in stages]
    assert len(times) == num_stages
    assert min(times) > 0
    widest = max(total_times(block.parts, device).both_s for block in model.blocks)
    assert max(times) <= sum(times) / num_stages + widest


def test_equal_blocks_are_cut_evenly() -> None:
    assert [len(stage) for stage in cut(workload(batch=1).description, None, 4)] == [3, 2, 2, 2]  # with the embedding


def test_more_stages_than_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="expected at most the 8 blocks of measured that compute"):
        cut(workload(batch=1).description, None, 10)


@pytest.mark.parametrize(("tensor", "context", "micro_batch"), [(1, 1, 1), (4, 1, 2), (2, 4, 3)])
def test_ranks_share_what_is_computed(tensor: int, context: int, micro_batch: int) -> None:
    given = workload(batch=micro_batch, tensor=tensor, context=context, micro_batch=micro_batch)
    blocks = given.description.blocks
    assert seconds(StagePasses(given).forward(blocks)) == pytest.approx(LAYERS * micro_batch / tensor / context)
    assert seconds(StagePasses(given).backward(blocks)) == pytest.approx(2 * LAYERS * micro_batch / tensor / context)


@pytest.mark.parametrize(("recompute", "extra"), [("none", 0.0), ("full", 1.0)])
def test_what_is_computed_again_takes_a_forward_pass(recompute: str, extra: float) -> None:
    passes = StagePasses(workload(batch=1, recompute=recompute))
    assert seconds(passes.backward(passes.workload.description.blocks)) == pytest.approx((2 + extra) * LAYERS)


def test_selective_recomputation_is_that_of_scores() -> None:
    """Korthikanti et al. (MLSys 2023): scores are 1 / (1 + 6 h / s) of a layer's FLOPs, without a causal mask."""
    given = workload(model="gpt-3-175b", device=H100, nvlink_gbps=1.0, batch=1, recompute="selective")
    plain = given.model_copy(update={"recompute": "none"})
    block = [given.description.blocks[1]]
    again_s = seconds(StagePasses(given).backward(block)) - seconds(StagePasses(plain).backward(block))
    assert again_s / seconds(StagePasses(given).forward(block)) == pytest.approx(1 / (1 + 6 * 12288 / 2048))


def test_tensor_parallelism_reduces_activations_twice_a_layer_and_pass() -> None:
    """Megatron-LM: an all-reduce of b s h after attention and after the MLP, in either pass."""
    passes = StagePasses(workload(batch=2, micro_batch=2, tensor=4))
    for steps in (passes.forward, passes.backward):
        found = communications(steps(passes.workload.description.blocks))
        size_bytes = 2 * TOKENS * WIDTH * 2
        assert found == [Communication(Dimension.TENSOR, Collective.ALL_REDUCE, size_bytes)] * 2 * LAYERS


def test_context_parallelism_gathers_keys_and_values_and_scatters_their_gradients() -> None:
    passes = StagePasses(workload(batch=1, context=2))
    blocks = passes.workload.description.blocks
    size_bytes = 2 * TOKENS * WIDTH * 2
    gather, scatter = (
        Communication(Dimension.CONTEXT, collective, size_bytes)
        for collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
    )
    assert communications(passes.forward(blocks)) == [gather] * LAYERS
    assert communications(passes.backward(blocks)) == [gather, scatter] * LAYERS


def test_experts_get_tokens_and_give_them_back() -> None:
    passes = StagePasses(workload(model=EXPERTS, batch=1, expert=4))
    routed = Communication(Dimension.EXPERT, Collective.ALL_TO_ALL, 2 * TOKENS * WIDTH * 2)
    assert communications(passes.forward(passes.workload.description.blocks)) == [routed, routed] * LAYERS


def test_gradients_are_divided_by_tensor_and_expert_parallelism() -> None:
    given = workload(model=EXPERTS, batch=1, expert=4, tensor=2)
    passes, model = StagePasses(given), given.description
    experts = LAYERS * 8 * 3 * WIDTH * 256
    assert passes.gradient_bytes_of(model.blocks) == ((model.parameters - experts) / 2 * 2, experts / 8 * 2)


def test_one_stage_more_than_blocks_that_compute_is_the_embeddings() -> None:
    model = public_model(PublicModel.LLAMA_3_8B)
    stages = cut(model, Device.model_validate(H100), 34)
    assert [block.name for block in stages[0]] == ["embedding"]
    assert [block.name for block in stages[1]] == ["block 0"]
    with pytest.raises(ValueError, match="expected at most the 33 blocks"):
        cut(model, Device.model_validate(H100), 35)


MEMORY = H100 | {"memory_bytes_per_s": 1e12}


def memory_s(**keys: Any) -> float:
    """Seconds of a forward pass over a GPT-3 layer that memory adds."""
    with_memory, without = (
        StagePasses(workload(model="gpt-3-175b", nvlink_gbps=1.0, batch=4, device=device, **keys))
        for device in (MEMORY, H100)
    )
    block = [with_memory.workload.description.blocks[1]]
    return seconds(with_memory.forward(block)) - seconds(without.forward(block))


def test_norms_sums_and_activation_functions_take_the_time_of_their_bytes() -> None:
    """Two norms of two passes, two sums of three, and two passes of an activation function of the fourfold width."""
    tokens, width = 2048, 12288
    assert memory_s() == pytest.approx(2 * tokens * width * (2 * 2 + 2 * 3 + 2 * 4) / 1e12)


def test_tensor_parallelism_divides_norms_and_sums_with_the_sequence_alone() -> None:
    tokens, width = 2048, 12288
    assert memory_s(tensor=4) == pytest.approx(2 * tokens * width * (2 * 2 + 2 * 3 + 2 * 4 / 4) / 1e12)
    assert memory_s(tensor=4, sequence=True) == pytest.approx(memory_s() / 4)
    assert memory_s(context=2, micro_batch=2) == pytest.approx(memory_s())


def test_backward_passes_move_half_as_much_again() -> None:
    with_memory, without = (
        StagePasses(workload(model="gpt-3-175b", nvlink_gbps=1.0, batch=4, device=device)) for device in (MEMORY, H100)
    )
    block = [with_memory.workload.description.blocks[1]]
    extra_s = seconds(with_memory.backward(block)) - seconds(without.backward(block))
    # Scores that are not stored are computed again: a product of s^2 h.
    again_s = 2 * 2048**2 * 12288 / (989e12 * 0.5)
    assert extra_s == pytest.approx(1.5 * memory_s() + again_s)


def test_stored_scores_pass_memory_six_times_and_again_when_recomputed() -> None:
    layer = {"type": "attention", "heads": 8, "stored_scores": True, "causal": False}
    model = MEASURED | {"layers": [MEASURED["layers"][0], layer]}
    stored = StagePasses(workload(model=model, device=MEMORY, batch=1, recompute="selective"))
    plain = StagePasses(workload(model=model, device=MEMORY, batch=1))
    block = [stored.workload.description.blocks[1]]
    score_s = 2 * 6 * 8 * TOKENS**2 / 1e12
    flops = 4 * TOKENS**2 * WIDTH
    again_s = seconds(stored.backward(block)) - seconds(plain.backward(block))
    assert again_s == pytest.approx(score_s + flops / (989e12 * 0.5))


@pytest.mark.parametrize(("zero", "sharers"), [(0, 1), (1, 4), (3, 4)])
def test_adam_moves_thirty_bytes_a_parameter_and_zero_divides_them(zero: int, sharers: int) -> None:
    passes = StagePasses(workload(model="gpt-3-175b", nvlink_gbps=1.0, batch=4, tensor=2, zero=zero, device=MEMORY))
    model = passes.workload.description
    assert passes.optimizer_s(model.blocks, 4) == pytest.approx(30 * model.parameters / 2 / sharers / 1e12)
    assert StagePasses(workload(batch=1)).optimizer_s(model.blocks, 4) == 0
