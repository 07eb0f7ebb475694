"""A line of a sweep's output: one run, what it depends on, and what came of it."""

import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from experiments.scenarios.backend import Backend
from policies.enforcement import Enforcement


class Asked(BaseModel):
    """What is to be run: ``sha256`` is that of the scenario's ``file``, ``settings`` are what takes the place of keys
    there, ``versions`` those of the programs that a result depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    file: str
    sha256: str
    policy: str
    seed: int
    settings: dict[str, Any]
    backend: Backend
    enforcement: Enforcement
    versions: dict[str, str]

    @property
    def key(self) -> str:
        """What tells a run from all others of a sweep: neither where its file lies nor the versions."""
        return json.dumps(self.model_dump(mode="json", exclude=_NOT_TELLING), sort_keys=True)


_NOT_TELLING = {"file", "versions", "error", "result"}


class Measured(BaseModel):
    """What ``trainyard run --json`` prints of a run; named are the keys that are summed up."""

    model_config = ConfigDict(frozen=True, extra="allow")

    gpu_utilisation: float
    ideal_gpu_utilisation: float
    fluid_bound_gpu_utilisation: float

    @property
    def limit(self) -> float:
        """The smaller of ideal and fluid bound."""
        return min(self.ideal_gpu_utilisation, self.fluid_bound_gpu_utilisation)


class ResultLine(Asked):
    """A run that is over: its ``result``, or the ``error`` that ended it."""

    error: str | None = None
    result: Measured | None = None

    @model_validator(mode="after")
    def _has_one_outcome(self) -> Self:
        if (self.error is None) == (self.result is None):
            raise ValueError("expected either an error or a result")
        return self
