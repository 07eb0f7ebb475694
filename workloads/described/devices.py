"""Devices: how fast a GPU computes the layers of a model."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from workloads.field_types import Number, PositiveNumber, ScenarioModel


class DeviceName(StrEnum):
    """A GPU of the table."""

    V100 = "v100"
    A100 = "a100"
    H100 = "h100"
    H800 = "h800"
    H200 = "h200"
    B200 = "b200"


PEAK_FLOPS_PER_S: Mapping[DeviceName, float] = {
    DeviceName.V100: 125e12,
    DeviceName.A100: 312e12,
    DeviceName.H100: 989e12,
    DeviceName.H800: 989e12,
    DeviceName.H200: 989e12,
    DeviceName.B200: 2250e12,
}
"""FLOPs a second of dense 16-bit matrices, from NVIDIA's data sheets of the SXM modules, without sparsity."""

NVLINK_GBPS: Mapping[DeviceName, float] = {
    DeviceName.V100: 1200.0,
    DeviceName.A100: 2400.0,
    DeviceName.H100: 3600.0,
    DeviceName.H800: 1600.0,
    DeviceName.H200: 3600.0,
    DeviceName.B200: 7200.0,
}
"""Rate of a GPU's NVLinks in one direction: half of what data sheets give for both."""


MEMORY_GB: Mapping[DeviceName, float] = {
    DeviceName.V100: 32.0,
    DeviceName.A100: 80.0,
    DeviceName.H100: 80.0,
    DeviceName.H800: 80.0,
    DeviceName.H200: 141.0,
    DeviceName.B200: 180.0,
}
"""Memory of a GPU in 10^9 bytes, from data sheets of the largest SXM modules."""


class Device(ScenarioModel):
    """A GPU: one of the table by ``name``, or ``flops_per_s``; layers reach the fraction ``efficiency`` of that.

    ``memory_gb`` is its memory in 10^9 bytes; by default that of the table. With ``memory_bytes_per_s`` norms, sums,
    activation functions and stored scores take the time that memory needs to read and write them; without it they take
    none.
    """

    name: DeviceName | None = None
    flops_per_s: PositiveNumber | None = Field(default=None, validate_default=True)
    efficiency: Annotated[Number, Field(gt=0, le=1)]
    memory_gb: PositiveNumber | None = None
    memory_bytes_per_s: PositiveNumber | None = None

    @field_validator("flops_per_s")
    @classmethod
    def _has_one_speed(cls, flops_per_s: float | None, info: ValidationInfo) -> float | None:
        if "name" in info.data and (flops_per_s is None) == (info.data["name"] is None):
            raise ValueError("expected exactly one of name and flops_per_s")
        return flops_per_s

    @property
    def speed_flops_per_s(self) -> float:
        """FLOPs a second that layers reach."""
        peak = self.flops_per_s if self.name is None else PEAK_FLOPS_PER_S[self.name]
        assert peak is not None
        return peak * self.efficiency

    @property
    def memory_bytes(self) -> float | None:
        """Bytes of its memory; None where neither the table nor ``memory_gb`` says."""
        in_table = None if self.name is None else MEMORY_GB[self.name]
        gb = self.memory_gb or in_table
        return None if gb is None else gb * 1e9
