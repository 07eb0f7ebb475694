"""Layers by shape against closed forms that papers print, and small counts by hand."""

from typing import Any

import pytest
from pydantic import ValidationError

from workloads.described.catalogue import PublicModel, public_model
from workloads.described.description import ModelDescription


def model(*layers: dict[str, Any], **keys: Any) -> ModelDescription:
    keys = {"tokens": 10} | keys if "image" not in keys else keys
    return ModelDescription.model_validate({"name": "m", "layers": layers, **keys})


def embedded(*layers: dict[str, Any], width: int = 8, **keys: Any) -> ModelDescription:
    return model({"type": "embedding", "vocabulary": 4, "width": width}, *layers, **keys)


def test_gpt_has_the_flops_of_megatrons_formula() -> None:
    """F = 96 s l h^2 (1 + s / 6h + V / 16lh) of a recomputed sample (Narayanan et al., SC 2021, section 5.1)."""
    gpt = public_model(PublicModel.GPT_3_175B)
    s, layers, h, vocabulary = 2048, 96, 12288, 50257
    formula = 96 * s * layers * h**2 * (1 + s / (6 * h) + vocabulary / (16 * layers * h))
    head = next(part for part in gpt.parts if part.name == "head").numbers.flops
    # The formula computes all layers' forward passes twice, and that of the head once.
    assert 4 * gpt.forward_flops - head == pytest.approx(formula, rel=1e-12)


def test_gpt_has_the_parameters_of_megatrons_formula() -> None:
    """P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12lh), apart from the last norm (the same, section 5.1)."""
    gpt = public_model(PublicModel.GPT_3_175B)
    layers, h = 96, 12288
    formula = 12 * layers * h**2 * (1 + 13 / (12 * h) + (50257 + 2048) / (12 * layers * h))
    assert gpt.parameters == round(formula) + 2 * h


def test_fewer_key_value_heads_are_smaller_projections() -> None:
    attention = {"type": "attention", "heads": 4}
    whole, grouped = embedded(attention), embedded(attention | {"key_value_heads": 1})
    assert whole.parameters - grouped.parameters == 2 * 8 * 6
    assert whole.score_flops == grouped.score_flops == 10 * 10 * 2 * 8


def test_a_causal_token_attends_to_half() -> None:
    whole = embedded({"type": "attention", "heads": 4, "causal": False})
    assert whole.score_flops == 2 * embedded({"type": "attention", "heads": 4}).score_flops


def test_a_window_leaves_out_pairs_that_are_further_apart() -> None:
    windowed = embedded({"type": "attention", "heads": 4, "window": 4})
    # Ten tokens, of which each attends to the last four: 10 * 4 - 4 * 4 / 2 pairs, as half of all for a window of ten.
    assert windowed.score_flops == 4 * 32 * 8
    assert embedded({"type": "attention", "heads": 4, "window": 20}).score_flops == 10 * 10 * 2 * 8


def test_cross_attention_has_keys_and_values_of_the_other_row() -> None:
    crossed = embedded({"type": "attention", "heads": 4, "causal": False, "memory_tokens": 30})
    assert crossed.score_flops == 4 * 10 * 30 * 8
    assert crossed.forward_flops - crossed.score_flops == 2 * (10 * 2 * 8 * 8 + 30 * 2 * 8 * 8)


@pytest.mark.parametrize(
    ("keys", "wanted"), [({"window": 4, "causal": False}, "true"), ({"memory_tokens": 4}, "false")]
)
def test_windows_are_of_causal_attention_and_other_rows_are_not(keys: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValidationError, match=f"expected only with causal: {wanted}"):
        embedded({"type": "attention", "heads": 4, **keys})


def test_biases_before_attention_alone() -> None:
    attention = {"type": "attention", "heads": 4, "key_value_heads": 2}
    plain, before, all_of_them = (embedded(attention | keys) for keys in ({}, {"qkv_bias": True}, {"bias": True}))
    assert before.parameters - plain.parameters == 8 + 2 * 4
    assert all_of_them.parameters - before.parameters == 8


def test_squeezing_has_two_projections_of_one_token() -> None:
    def of(*layers: dict[str, Any]) -> ModelDescription:
        stem = {"type": "convolution", "outputs": 6, "kernel": 1}
        return model(stem, *layers, image={"size": 5})

    squeezed = of({"type": "squeeze_excitation", "squeeze": 2})
    assert squeezed.parameters - of().parameters == 2 * 6 * 2 + 2 + 6
    assert squeezed.forward_flops - of().forward_flops == 2 * 2 * 6 * 2


def test_only_active_experts_compute() -> None:
    mixed = embedded({"type": "moe", "experts": 6, "active": 2, "shared": 1, "hidden": 16})
    expert, router = 3 * 8 * 16, 8 * 6
    assert mixed.parameters == 4 * 8 + 7 * expert + router
    assert mixed.active_parameters == 4 * 8 + 3 * expert + router
    assert mixed.forward_flops == 2 * 10 * (3 * expert + router)


def test_a_tied_head_computes_without_parameters() -> None:
    free, tied = (embedded({"type": "linear", "outputs": 4, "tied": tied}) for tied in (False, True))
    assert free.parameters - tied.parameters == 8 * 4
    assert free.forward_flops == tied.forward_flops == 2 * 10 * 8 * 4


@pytest.mark.parametrize(
    ("keys", "size"),
    [({"kernel": 3}, 9), ({"kernel": 3, "stride": 2}, 5), ({"kernel": 3, "padding": 0}, 7), ({"kernel": 9}, 9)],
)
def test_a_convolution_gives_an_image_of_the_size_that_its_kernel_fits(keys: dict[str, int], size: int) -> None:
    convolved = model({"type": "convolution", "outputs": 4, **keys}, image={"size": 9})
    assert convolved.blocks[-1].output.size == size
    assert convolved.forward_flops == 2 * size**2 * 3 * 4 * keys["kernel"] ** 2


def test_groups_divide_a_convolution() -> None:
    convolved = model({"type": "convolution", "outputs": 6, "kernel": 3, "groups": 3}, image={"size": 9})
    assert convolved.parameters == 6 * 9


def test_a_given_layer_is_what_it_says() -> None:
    given = model({"type": "given", "parameters": 7, "flops": 1e9, "activations": 25})
    assert (given.parameters, given.forward_flops, given.blocks[0].output.elements) == (7, 10**9, 25)


def test_a_block_that_repeats_is_as_many_blocks() -> None:
    layers = [{"type": "norm"}, {"type": "mlp", "hidden": 4}]
    repeated = embedded({"type": "block", "repeat": 3, "layers": layers})
    written_out = embedded(*({"type": "block", "layers": layers} for _ in range(3)))
    assert len(repeated.blocks) == len(written_out.blocks) == 4
    assert repeated.parameters == written_out.parameters
    assert [block.name for block in repeated.blocks] == ["embedding", "block 0", "block 1", "block 2"]
