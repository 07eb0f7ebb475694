"""Models as data, from files or from the table of public models."""

from os import PathLike
from pathlib import Path

from workloads.described import catalogue
from workloads.described.catalogue import PublicModel
from workloads.described.description import ModelDescription


def load_model(path: str | PathLike[str]) -> ModelDescription:
    """Return the model of a YAML file.

    Raises:
        ValueError: The file cannot be read, or something is wrong with it; one line per problem, with its layer.
    """
    return catalogue.load_model(Path(path))


def public_model(name: str) -> ModelDescription:
    """Return a public model by its name, such as ``llama-3-70b``.

    Raises:
        ValueError: There is no public model of this name.
    """
    if name not in list(PublicModel):
        raise ValueError(f"expected one of {', '.join(PublicModel)}, got {name!r}")
    return catalogue.public_model(PublicModel(name))
