"""Descriptions of models: what is refused, by file and layer, and how long layers take."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from topologies.documents import DocumentError
from workloads.described.catalogue import load_model
from workloads.described.description import ModelDescription
from workloads.described.devices import Device
from workloads.described.timing import times_of, total_times

EMBEDDING = {"type": "embedding", "vocabulary": 100, "width": 64}
MLP = {"type": "mlp", "hidden": 256}


def refusals(tmp_path: Path, *layers: Any, **keys: Any) -> str:
    path = tmp_path / "mine.yaml"
    keys = keys if "image" in keys else {"tokens": 16} | keys
    path.write_text(yaml.safe_dump({"name": "mine", "layers": list(layers), **keys}), encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        load_model(path)
    assert all(message.startswith(f"{path}: ") for message in caught.value.messages)
    return "\n".join(message.removeprefix(f"{path}: ") for message in caught.value.messages)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"type": "attention", "heads": 5}, "layers[1] attention, heads: expected heads that divide the width 64"),
        (
            {"type": "attention", "heads": 4, "key_value_heads": 3},
            "layers[1] attention, key_value_heads: expected a number that divides the 4 heads, got 3",
        ),
        ({"type": "moe", "experts": 4, "active": 5, "hidden": 8}, "layers[1] moe, active: expected at most the 4 expe"),
        (MLP | {"forward_s": -1.0, "backward_s": 1.0}, "layers[1] mlp, forward_s: expected greater than 0, got -1.0"),
        (MLP | {"forward_s": 1.0}, "layers[1] mlp, backward_s: expected both forward_s and backward_s, or neither"),
        (MLP | {"hidden": 0, "name": "wide"}, "layers[1] wide, hidden: expected greater than 0, got 0"),
        ({"type": "convolution", "outputs": 4, "kernel": 3}, "layers[1] convolution: convolution needs an image, but"),
        (EMBEDDING, "layers[1] embedding: an embedding must be the first layer"),
        ({"type": "lstm"}, "layers[1].type: expected one of 'embedding', 'norm', 'attention',"),
        (MLP | {"colour": 1}, "layers[1] mlp, colour: unknown key; expected one of backward_s, bias, forward_s,"),
        (
            {"type": "block", "repeat": 2, "layers": [MLP, {"type": "linear", "outputs": 32}]},
            "layers[1] block, repeat: expected a block that gives what it gets, 16 tokens of width 64, but it gives 16",
        ),
        (
            {"type": "residual", "layers": [{"type": "linear", "outputs": 32}]},
            "layers[1] residual, layers: expected layers that give what the shortcut gives, 16 tokens of width 64, but",
        ),
        (
            {"type": "block", "forward_s": 1, "backward_s": 2, "layers": [MLP | {"forward_s": 1, "backward_s": 2}]},
            "layers[1] block, layers[0] mlp, forward_s: expected durations of this layer or of the layers around it",
        ),
        (
            {"type": "block", "repeat": 4096, "layers": [MLP] * 3},
            "layers[1] block, layers[2] mlp: expected at most 10,000 layers with their repetitions",
        ),
    ],
)
def test_a_layer_that_does_not_fit_is_named(layer: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert message in refusals(tmp_path, EMBEDDING, layer)


def test_patches_must_divide_an_image(tmp_path: Path) -> None:
    found = refusals(tmp_path, {"type": "patches", "size": 16, "width": 8}, image={"size": 225})
    assert found == "layers[0] patches, size: expected patches that divide the image of 225 x 225, got 16"


def test_one_mistake_does_not_hide_the_next(tmp_path: Path) -> None:
    wrong = {"type": "attention", "heads": 5}, {"type": "moe", "experts": 4, "active": 5, "hidden": 8}
    assert len(refusals(tmp_path, EMBEDDING, *wrong).splitlines()) == 2


@pytest.mark.parametrize("keys", [{"image": {"size": 8}, "tokens": 4}, {"tokens": None, "image": None}])
def test_a_sample_is_tokens_or_an_image(keys: dict[str, Any], tmp_path: Path) -> None:
    assert "image: expected exactly one of tokens and image" in refusals(tmp_path, EMBEDDING, MLP, **keys)


def test_a_model_must_compute_something(tmp_path: Path) -> None:
    assert "layers: expected a layer with FLOPs or durations" in refusals(tmp_path, EMBEDDING)


def test_a_device_has_one_speed(tmp_path: Path) -> None:
    both = {"name": "h100", "flops_per_s": 1e12, "efficiency": 0.5}
    assert "device.flops_per_s: expected exactly one of name" in refusals(tmp_path, EMBEDDING, MLP, device=both)


def described(*layers: Any) -> ModelDescription:
    return ModelDescription.model_validate({"name": "mine", "tokens": 16, "layers": [EMBEDDING, *layers]})


def test_flops_take_time_by_the_speed_of_the_device() -> None:
    device = Device(flops_per_s=1e9, efficiency=0.5)
    times = times_of(tuple(described(MLP).parts)[1], device)
    assert times.forward_s == pytest.approx(2 * 16 * 2 * 64 * 256 / 0.5e9)
    assert times.backward_s == pytest.approx(2 * times.forward_s)


def test_measured_durations_go_before_flops_and_need_no_device() -> None:
    model = described(MLP | {"forward_s": 0.25, "backward_s": 0.75})
    assert not model.needs_device
    assert total_times(tuple(model.parts), None).both_s == 1.0


def test_a_layer_without_durations_needs_a_device() -> None:
    with pytest.raises(ValueError, match="layer 'mlp' has neither durations nor a device"):
        total_times(tuple(described(MLP).parts), None)


def test_the_durations_of_a_block_are_shared_out_by_flops() -> None:
    block = {"type": "block", "repeat": 2, "forward_s": 1.0, "backward_s": 2.0}
    model = described(block | {"layers": [{"type": "norm"}, MLP, MLP | {"hidden": 768}]})
    assert [part.measured_s and part.measured_s[0] for part in model.blocks[1].parts] == [0.0, 0.25, 0.75]
    assert total_times(tuple(model.parts), None).backward_s == pytest.approx(4.0)
