"""How jobs that tell nothing of themselves are measured."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ProfilingOptions(BaseModel):
    """While a job is measured its counters are read every ``sample_s``, for at most ``window_s``.

    Every ``check_s`` it is looked at again, below everybody's eye; where that differs by more than ``drift``, a share,
    it is measured anew.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_s: _Seconds = 0.02
    window_s: _Seconds = 30.0
    check_s: _Seconds = 60.0
    drift: Annotated[float, Field(gt=0, lt=1)] = 0.2
