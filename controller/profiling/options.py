"""Options of profiling, a part of the controller's configuration."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from topologies.bounds import at_least

_Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), at_least(1e-6)]


class ProfilingOptions(BaseModel):
    """How jobs that describe no profile are measured.

    profiling:
      sample_s: 0.02
      window_s: 30
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_s: _Seconds = 0.02
    """Time between two readings of a job's counters while the job is measured."""
    window_s: _Seconds = 30.0
    """The longest time that a job is measured at a stretch."""
    check_s: _Seconds = 60.0
    """Time after which a measured job is checked again, at its usual level."""
    drift: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The relative difference that a check must find before the job is measured anew."""
