"""Field types of scenario files, with their bounds, and the base class of all their mappings."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.bounds import at_least

Name = Annotated[str, Field(min_length=1)]
PositiveCount = Annotated[int, Field(strict=True, gt=0)]
FlowsPerPair = Annotated[int, Field(strict=True, gt=0, le=LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1)]
NonNegativeCount = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
LONGEST_S = 1e6
"""Longest time in a scenario; the clock of a run ends after 106 days."""

Seconds = Annotated[Number, Field(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[Number, Field(gt=0, le=LONGEST_S), at_least(1e-12)]
Scale = Annotated[Number, Field(gt=0, le=1e6), at_least(1e-6)]
PositiveNumber = Annotated[Number, Field(gt=0), at_least(1e-6)]
Bytes = Annotated[Number, Field(ge=0, lt=2**63), at_least(1e-6)]
PositiveBytes = Annotated[Number, Field(gt=0, lt=2**63), at_least(1e-6)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Jitter = Annotated[Number, Field(ge=0, le=0.3)]
ErrorSize = Annotated[Number, Field(ge=0, lt=1)]


class ScenarioModel(BaseModel):
    """Base of all mappings in a scenario file: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
