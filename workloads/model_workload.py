"""The ``model:`` of a workload, a name or a description, and what all workloads of models have in common."""

from typing import Annotated, Any, Self

from pydantic import Field, ModelWrapValidatorHandler, WrapValidator, model_validator

from topologies.printable import quoted
from topologies.problems import Problem, validation_error
from workloads.described.catalogue import PublicModel, public_model
from workloads.described.description import ModelDescription
from workloads.described.devices import Device
from workloads.described.simple_jobs import DIVIDED, divided_layers
from workloads.field_types import FlowsPerPair, Number, PositiveNumber, ScenarioModel
from workloads.models import ModelName

MODEL_FILES = (".yaml", ".yml")
"""Endings of names that are files of models."""


AnyModel = ModelName | PublicModel | ModelDescription


def _named_or_described(value: Any, _handler: ModelWrapValidatorHandler[Any]) -> AnyModel:
    """Return the model that a value names or describes, with the problems of that alone."""
    if isinstance(value, ModelDescription):
        return value
    if not isinstance(value, str):
        return ModelDescription.model_validate(value)
    for names in (ModelName, PublicModel):
        if value in list(names):
            return names(value)
    if value.endswith(MODEL_FILES):
        raise ValueError(f"expected a model; only a scenario's own file can name another one, {quoted(value)}")
    known = ", ".join((*ModelName, *PublicModel))
    raise ValueError(f"expected one of {known}, the name of a file that ends in .yaml, or a mapping")


ModelReference = Annotated[AnyModel, WrapValidator(_named_or_described)]
"""A model of the table, a public model, or a description."""


def description_of(model: AnyModel) -> ModelDescription | None:
    """Return the description of a public or described model; None for one of the table."""
    if isinstance(model, ModelDescription):
        return model
    return public_model(model) if isinstance(model, PublicModel) else None


class ModelWorkload(ScenarioModel):
    """A model: one of the table (``workloads.models``), a public one, or a description.

    The ``type`` of the workload names its parallelism. ``flows_per_pair`` overrides the model's; ``flops`` is what the
    whole job computes in one iteration. A public or described model computes so many ``samples_per_gpu`` in an
    iteration, on a ``device`` if its description has none.
    """

    model: ModelReference
    samples_per_gpu: Annotated[Number, Field(gt=0, le=1e9, ge=1e-9)] | None = None
    device: Device | None = None
    flows_per_pair: FlowsPerPair | None = None
    flops: PositiveNumber | None = None

    @property
    def description(self) -> ModelDescription | None:
        """The description of the model; None where it is one of the table."""
        return description_of(self.model)

    @model_validator(mode="after")
    def _says_how_much_is_computed(self) -> Self:
        if problems := self._model_problems():
            raise validation_error(self, problems)
        return self

    def _model_problems(self) -> list[Problem]:
        description = self.description
        if description is None:
            given = [key for key in ("samples_per_gpu", "device") if getattr(self, key) is not None]
            return [Problem((key,), f"expected no such key with the model {self.model}") for key in given]
        problems = []
        if self.samples_per_gpu is None:
            problems.append(Problem(("samples_per_gpu",), f"missing; the model {description.name} needs this key"))
        problems += device_problems(description, self.device)
        kind = str(getattr(self, "type", ""))
        layers = getattr(self, "layers", None)
        if kind in DIVIDED and not divided_layers(kind, description):
            problem = f"expected a model with {DIVIDED[kind]}, {description.name} has none"
            problems.append(Problem(("model",), problem))
        elif layers is not None and layers != divided_layers(kind, description):
            problem = f"expected no such key, or the {divided_layers(kind, description)} of {description.name}"
            problems.append(Problem(("layers",), problem, layers))
        return problems


def device_problems(description: ModelDescription, device: Device | None) -> list[Problem]:
    """Return the problem of a model that needs a device and has none."""
    if description.needs_device and device is None and description.device is None:
        problem = f"missing; the model {description.name} has layers without durations and no device"
        return [Problem(("device",), problem)]
    return []
