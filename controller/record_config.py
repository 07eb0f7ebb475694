"""How long the record is kept."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class RecordConfig(BaseModel):
    """``plans``: the last so many Plans; ``audit_days``: requests to switches for so many days."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plans: Annotated[int, Field(ge=1)] = 10_000
    audit_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
