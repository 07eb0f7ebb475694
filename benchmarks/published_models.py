"""Parameters and FLOPs that the reports of public models print, beside those of their layers by shape.

FLOPs are compared as each report counts them, because reports count differently. ``counting`` says how.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from workloads.described.catalogue import PublicModel, public_model
from workloads.described.description import ModelDescription

Count = Callable[[ModelDescription], float]


@dataclass(frozen=True, slots=True)
class Published:
    """A number of a report: of which model, what it counts, where it is printed, and the same by our layers."""

    model: PublicModel
    what: str
    value: float
    source: str
    counting: str
    ours: Count

    @property
    def error(self) -> float:
        """Relative difference of ours from the report's; more than zero where ours is larger."""
        return self.ours(public_model(self.model)) / self.value - 1


def _parameters(model: ModelDescription) -> float:
    return model.parameters


def _active(model: ModelDescription) -> float:
    return model.active_parameters


def _active_without_embedding(model: ModelDescription) -> float:
    return model.active_parameters - next(iter(model.parts)).numbers.parameters


def _multiplications(model: ModelDescription) -> float:
    return model.forward_flops / 2


def _training_per_token(model: ModelDescription) -> float:
    return 3 * model.forward_flops / model.input.tokens


def _training_without_scores(tokens: float) -> Count:
    return lambda model: 3 * (model.forward_flops - model.score_flops) / model.input.tokens * tokens


_LLAMA = "arXiv:2407.21783"
_LLAMA_3 = (PublicModel.LLAMA_3_8B, PublicModel.LLAMA_3_70B, PublicModel.LLAMA_3_405B)
_ALL = "all parameters"

PUBLISHED = (
    Published(PublicModel.LLAMA_3_8B, "parameters", 8.03e9, "model card of Llama 3 8B", _ALL, _parameters),
    Published(PublicModel.LLAMA_3_70B, "parameters", 70.6e9, "model card of Llama 3 70B", _ALL, _parameters),
    Published(PublicModel.LLAMA_3_405B, "parameters", 405e9, f"{_LLAMA}, section 1", _ALL, _parameters),
    Published(
        PublicModel.LLAMA_3_405B,
        "training FLOPs",
        3.8e25,
        f"{_LLAMA}, section 1",
        "forward and backward pass of 15.6e12 tokens, without attention's scores (as 6 N D)",
        _training_without_scores(15.6e12),
    ),
    Published(PublicModel.MIXTRAL_8X7B, "parameters", 47e9, "arXiv:2401.04088, section 1", _ALL, _parameters),
    Published(PublicModel.MIXTRAL_8X7B, "active parameters", 13e9, "arXiv:2401.04088, section 1", _ALL, _active),
    Published(PublicModel.DEEPSEEK_V3, "parameters", 671e9, "arXiv:2412.19437, section 4.2", _ALL, _parameters),
    Published(
        PublicModel.DEEPSEEK_V3,
        "active parameters",
        36.6e9,
        "DeepSeek-V3, README_WEIGHTS.md",
        "with the head, without the embedding",
        _active_without_embedding,
    ),
    Published(
        PublicModel.DEEPSEEK_V3,
        "training FLOPs per token",
        250e9,
        "Insights into DeepSeek-V3 (ISCA 2025), table 2",
        "rows of 4096 tokens, with causal attention",
        _training_per_token,
    ),
    Published(PublicModel.GPT_3_175B, "parameters", 174_600e6, "arXiv:2005.14165, table D.1", _ALL, _parameters),
    Published(
        PublicModel.GPT_3_175B,
        "training FLOPs",
        3.14e23,
        "arXiv:2005.14165, table D.1",
        "forward and backward pass of 300e9 tokens, without attention's scores",
        _training_without_scores(300e9),
    ),
    Published(PublicModel.RESNET_50, "parameters", 25_557_032, "torchvision, ResNet50_Weights", _ALL, _parameters),
    Published(
        PublicModel.RESNET_50,
        "multiplications",
        4.09e9,
        "torchvision, ResNet50_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
    Published(PublicModel.VIT_B_16, "parameters", 86_567_656, "torchvision, ViT_B_16_Weights", _ALL, _parameters),
    Published(
        PublicModel.VIT_B_16,
        "multiplications",
        17.56e9,
        "torchvision, ViT_B_16_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
    Published(PublicModel.VIT_L_16, "parameters", 304_326_632, "torchvision, ViT_L_16_Weights", _ALL, _parameters),
    Published(
        PublicModel.VIT_L_16,
        "multiplications",
        61.55e9,
        "torchvision, ViT_L_16_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
    Published(PublicModel.LLAMA_2_70B, "parameters", 68_976_648_192, "weights of Llama-2-70b", _ALL, _parameters),
    Published(PublicModel.MISTRAL_7B, "parameters", 7_241_732_096, "weights of Mistral-7B-v0.1", _ALL, _parameters),
    Published(PublicModel.QWEN_2_5_72B, "parameters", 72.7e9, "model card of Qwen2.5-72B", _ALL, _parameters),
    Published(
        PublicModel.GEMMA_2_9B,
        "parameters",
        9_242_164_736,
        "arXiv:2408.00118, table 2, both columns",
        _ALL,
        _parameters,
    ),
    Published(PublicModel.BERT_LARGE, "parameters", 335_141_888, "weights of bert-large-uncased", _ALL, _parameters),
    Published(PublicModel.T5_11B, "parameters", 11_307_321_344, "weights of t5-11b", _ALL, _parameters),
    Published(PublicModel.VIT_H_14, "parameters", 632_045_800, "torchvision, ViT_H_14_Weights", _ALL, _parameters),
    Published(
        PublicModel.VIT_H_14,
        "multiplications",
        167.295e9,
        "torchvision, ViT_H_14_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
    Published(
        PublicModel.CONVNEXT_TINY, "parameters", 28_589_128, "torchvision, ConvNeXt_Tiny_Weights", _ALL, _parameters
    ),
    Published(
        PublicModel.CONVNEXT_TINY,
        "multiplications",
        4.456e9,
        "torchvision, ConvNeXt_Tiny_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
    Published(
        PublicModel.EFFICIENTNET_B0, "parameters", 5_288_548, "torchvision, EfficientNet_B0_Weights", _ALL, _parameters
    ),
    Published(
        PublicModel.EFFICIENTNET_B0,
        "multiplications",
        0.386e9,
        "torchvision, EfficientNet_B0_Weights",
        "forward pass, a multiplication with its addition as one",
        _multiplications,
    ),
)
"""The reports' numbers."""


def errors() -> Iterator[Mapping[str, object]]:
    """Yield a row for each published number: ours beside it, and the relative error."""
    for each in PUBLISHED:
        yield {
            "model": str(each.model),
            "what": each.what,
            "published": each.value,
            "ours": each.ours(public_model(each.model)),
            "error": each.error,
            "source": each.source,
            "counting": each.counting,
        }


def worst_error(*models: PublicModel) -> float:
    """Return the largest relative error of these models, or of all."""
    return max(abs(each.error) for each in PUBLISHED if not models or each.model in models)


def llama_error() -> float:
    """Return the largest relative error of the Llama 3 models."""
    return worst_error(*_LLAMA_3)
