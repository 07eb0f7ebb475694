"""Assumptions about a trace: its network, and what its models compute and send."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from topologies.fabric import Fabric
from topologies.problems import problem_of_error
from topologies.specification import Topology
from workloads.field_types import (
    FlowsPerPair,
    Fraction,
    Name,
    PositiveBytes,
    PositiveCount,
    PositiveSeconds,
    ScenarioModel,
)
from workloads.loading import ScenarioError, read_scenario_document
from workloads.models import MODELS, Model, ModelName

SHIPPED_ASSUMPTIONS = Path(__file__).with_name("assumptions.yaml")
"""The assumptions that come with Trainyard; ``docs/traces.md`` has the reasons."""


class AssumedModel(ScenarioModel):
    """Numbers of a model, as in ``workloads.models.Model``."""

    compute_s: PositiveSeconds
    comm_start: Fraction
    gradient_bytes: PositiveBytes
    flows_per_pair: FlowsPerPair | None = None


class OtherModel(ScenarioModel):
    """The model of jobs whose label is unknown, up to ``up_to_gpus`` GPUs; of any size where that is None."""

    up_to_gpus: PositiveCount | None = None
    model: Name


class Assumptions(ScenarioModel):
    """An assumptions file. ``labels`` maps the trace's labels to models; ``models`` adds models to the model table."""

    topology: Topology
    models: Mapping[Name, AssumedModel]
    labels: Mapping[Name, Name]
    others: Annotated[tuple[OtherModel, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _every_job_has_a_model(self) -> Self:
        limits = [other.up_to_gpus for other in self.others]
        bounded = [limit for limit in limits[:-1] if limit is not None]
        if len(bounded) < len(limits) - 1 or limits[-1] is not None or bounded != sorted(set(bounded)):
            raise ValueError("others: expected up_to_gpus to grow, and none in the last")
        named = (*self.labels.values(), *(other.model for other in self.others))
        unknown = [name for name in named if name not in (*ModelName, *self.models)]
        if unknown:
            raise ValueError(f"expected models of this file or of workloads/models.py, got {unknown[0]!r}")
        return self

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric of the topology."""
        return self.topology.build()

    def on(self, topology: Topology) -> Self:
        """Return the same assumptions on another topology."""
        return type(self)(topology=topology, models=self.models, labels=self.labels, others=self.others)

    def model(self, label: str, gpus: int) -> Model:
        """Return the model of a job with this label in the trace on so many GPUs."""
        if label in self.labels:
            return self._named(self.labels[label])
        fitting = (other for other in self.others if other.up_to_gpus is None or gpus <= other.up_to_gpus)
        return self._named(next(fitting).model)

    def _named(self, name: str) -> Model:
        own = self.models.get(name)
        if own is None:
            return MODELS[ModelName(name)]
        return Model(own.compute_s, own.comm_start, own.gradient_bytes, 0.0, own.flows_per_pair)


def load_assumptions(path: Path = SHIPPED_ASSUMPTIONS) -> Assumptions:
    """Read an assumptions file. Raises ScenarioError with all its problems."""
    document = read_scenario_document(path)
    problems = list(document.problems)
    try:
        assumptions = Assumptions.model_validate(document.contents)
    except ValidationError as error:
        problems += [problem_of_error(fault, document.contents, Assumptions) for fault in error.errors()]
    if problems:
        raise ScenarioError(document.messages(problems))
    return assumptions
