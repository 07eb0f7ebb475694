"""Models that are not in the table, described in the same keys, against the counts of their released weights."""

from typing import Any

import pytest

from workloads.described.description import ModelDescription


def llama(
    width: int, layers: int, heads: int, hidden: int, *, vocabulary: int = 32000, tied: bool = False, **attention: Any
) -> dict[str, Any]:
    block = [
        {"type": "norm"},
        {"type": "attention", "heads": heads, **attention},
        {"type": "norm"},
        {"type": "mlp", "hidden": hidden, "gated": True},
    ]
    return {
        "tokens": 4096,
        "layers": [
            {"type": "embedding", "vocabulary": vocabulary, "width": width},
            {"type": "block", "repeat": layers, "layers": block},
            {"type": "norm"},
            {"type": "linear", "outputs": vocabulary, "tied": tied},
        ],
    }


def gpt(
    width: int, layers: int, heads: int, *, vocabulary: int, positions: int | None = None, tied: bool = True
) -> dict[str, Any]:
    block = [
        {"type": "norm", "bias": True},
        {"type": "attention", "heads": heads, "bias": True},
        {"type": "norm", "bias": True},
        {"type": "mlp", "hidden": 4 * width, "bias": True},
    ]
    return {
        "tokens": 1024,
        "layers": [
            {"type": "embedding", "vocabulary": vocabulary, "width": width, "positions": positions},
            {"type": "block", "repeat": layers, "layers": block},
            {"type": "norm", "bias": True},
            {"type": "linear", "outputs": vocabulary, "tied": tied},
        ],
    }


def resnet(repeats: tuple[int, ...], *, bottleneck: bool) -> dict[str, Any]:
    norm = {"type": "norm", "bias": True}

    def residual(inputs: int, width: int, stride: int) -> dict[str, Any]:
        outputs = 4 * width if bottleneck else width
        sizes = ((width, 1, 1), (width, 3, stride), (outputs, 1, 1))
        sizes = sizes if bottleneck else ((width, 3, stride), (width, 3, 1))
        layers: list[dict[str, Any]] = []
        for channels, kernel, step in sizes:
            layers += [{"type": "convolution", "outputs": channels, "kernel": kernel, "stride": step}, norm]
        shortcut = [{"type": "convolution", "outputs": outputs, "kernel": 1, "stride": stride}, norm]
        keeps_shape = inputs == outputs and stride == 1
        return {"type": "residual", "layers": layers, "shortcut": [] if keeps_shape else shortcut}

    layers: list[dict[str, Any]] = [
        {"type": "convolution", "outputs": 64, "kernel": 7, "stride": 2},
        norm,
        {"type": "pool", "kernel": 3, "stride": 2, "padding": 1},
    ]
    inputs = 64
    for stage, repeat in enumerate(repeats):
        width = 64 * 2**stage
        for place in range(repeat):
            layers.append(residual(inputs, width, 2 if stage and not place else 1))
            inputs = 4 * width if bottleneck else width
    return {
        "image": {"size": 224},
        "layers": [*layers, {"type": "global_pool"}, {"type": "linear", "outputs": 1000, "bias": True}],
    }


@pytest.mark.parametrize(
    ("name", "described", "parameters", "multiplications"),
    [
        ("Llama 2 7B", llama(4096, 32, 32, 11008), 6_738_415_616, None),
        ("Llama 2 13B", llama(5120, 40, 40, 13824), 13_015_864_320, None),
        (
            "Qwen2.5 7B",
            llama(3584, 28, 28, 18944, vocabulary=152064, key_value_heads=4, qkv_bias=True),
            7_615_616_512,
            None,
        ),
        (
            "Qwen2.5 0.5B",
            llama(896, 24, 14, 4864, vocabulary=151936, tied=True, key_value_heads=2, qkv_bias=True),
            494_032_768,
            None,
        ),
        ("GPT-2", gpt(768, 12, 12, vocabulary=50257, positions=1024), 124_439_808, None),
        ("GPT-2 XL", gpt(1600, 48, 25, vocabulary=50257, positions=1024), 1_557_611_200, None),
        ("GPT-NeoX 20B", gpt(6144, 44, 64, vocabulary=50432, tied=False), 20_554_567_680, None),
        ("ResNet-18", resnet((2, 2, 2, 2), bottleneck=False), 11_689_512, 1.814e9),
        ("ResNet-34", resnet((3, 4, 6, 3), bottleneck=False), 21_797_672, 3.664e9),
        ("ResNet-101", resnet((3, 4, 23, 3), bottleneck=True), 44_549_160, 7.801e9),
        ("ResNet-152", resnet((3, 8, 36, 3), bottleneck=True), 60_192_808, 11.514e9),
    ],
)
def test_other_models_have_the_parameters_of_their_weights(
    name: str, described: dict[str, Any], parameters: int, multiplications: float | None
) -> None:
    model = ModelDescription.model_validate({"name": name, **described})
    assert model.parameters == parameters
    if multiplications is not None:
        assert model.forward_flops / 2 == pytest.approx(multiplications, rel=1e-3)
