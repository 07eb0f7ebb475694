"""Durations: how long a GPU computes the layers of a model, measured or by FLOPs and the speed of its device."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.described.description import ModelDescription, Part
from workloads.described.devices import Device

BACKWARD_FLOPS = 2
"""FLOPs of a backward pass for each of the forward pass: gradients of inputs, and of weights."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of one GPU for one sample, forward and backward."""

    forward_s: float
    backward_s: float

    @property
    def both_s(self) -> float:
        """Seconds of both passes."""
        return self.forward_s + self.backward_s


def times_of(part: Part, device: Device | None) -> PassTimes:
    """Return a layer's durations: measured ones as they are, else FLOPs by the device's speed.

    Raises ValueError for a layer with FLOPs and no durations, where there is no device.
    """
    if part.measured_s is not None:
        return PassTimes(*part.measured_s)
    if not part.numbers.flops:
        return PassTimes(0.0, 0.0)
    if device is None:
        raise ValueError(f"layer {part.name!r} has neither durations nor a device that computes it")
    forward_s = part.numbers.flops / device.speed_flops_per_s
    return PassTimes(forward_s, BACKWARD_FLOPS * forward_s)


def total_times(parts: Sequence[Part], device: Device | None) -> PassTimes:
    """Return the durations of layers one after the other. Raises ValueError as ``times_of`` does."""
    times = [times_of(part, device) for part in parts]
    return PassTimes(sum(each.forward_s for each in times), sum(each.backward_s for each in times))


def device_for(model: ModelDescription, given: Device | None) -> Device | None:
    """Return what a job computes a model on: the device that the job gives, else the model's own."""
    return given or model.device
