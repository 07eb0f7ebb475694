"""The public models, from the files in ``public``, and models from files of the user's own."""

from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from topologies.documents import Document, DocumentError, read_document
from topologies.problems import problem_of_error
from workloads.described.description import ModelDescription

PUBLIC_MODELS = Path(__file__).with_name("public")
"""Folder of the files of public models."""


class PublicModel(StrEnum):
    """A model whose shape its authors published."""

    LLAMA_3_8B = "llama-3-8b"
    LLAMA_3_70B = "llama-3-70b"
    LLAMA_3_405B = "llama-3-405b"
    MIXTRAL_8X7B = "mixtral-8x7b"
    DEEPSEEK_V3 = "deepseek-v3"
    GPT_3_175B = "gpt-3-175b"
    LLAMA_2_70B = "llama-2-70b"
    MISTRAL_7B = "mistral-7b"
    QWEN_2_5_72B = "qwen-2.5-72b"
    GEMMA_2_9B = "gemma-2-9b"
    BERT_LARGE = "bert-large"
    T5_11B = "t5-11b"
    RESNET_50 = "resnet-50"
    VIT_B_16 = "vit-b-16"
    VIT_L_16 = "vit-l-16"
    VIT_H_14 = "vit-h-14"
    CONVNEXT_TINY = "convnext-tiny"
    EFFICIENTNET_B0 = "efficientnet-b0"


@cache
def public_model(name: PublicModel) -> ModelDescription:
    """Return a public model."""
    return load_model(PUBLIC_MODELS / f"{name}.yaml")


def load_model(path: Path) -> ModelDescription:
    """Return the model of a YAML file.

    Raises:
        DocumentError: The file cannot be read, or something is wrong with it: a line for each problem, with the place
            and the name of the layer.
    """
    return model_of(read_document(path))


def model_of(document: Document) -> ModelDescription:
    """Return the model of a document. Raises DocumentError with all its problems, as ``load_model`` does."""
    problems = list(document.problems)
    try:
        model = ModelDescription.model_validate(document.contents)
    except ValidationError as error:
        problems += [problem_of_error(fault, document.contents, ModelDescription) for fault in error.errors()]
    if problems:
        raise DocumentError(document.messages(problems))
    return model
