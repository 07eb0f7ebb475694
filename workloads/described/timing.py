"""Durations: how long a GPU computes the layers of a model, measured or by FLOPs and the speed of its device."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.described.description import ModelDescription, Part
from workloads.described.devices import Device

BACKWARD_FLOPS = 2
"""FLOPs of a backward pass for each of the forward pass: gradients of inputs, and of weights."""
BACKWARD_MOVES = 1.5
"""What a backward pass reads and writes beside products: a gradient and an input are read, and a gradient written."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of one GPU for one sample, forward and backward."""

    forward_s: float
    backward_s: float

    @property
    def both_s(self) -> float:
        """Seconds of both passes."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class Shares:
    """What one GPU has of a sample's layer: of what parallelism divides, of norms and sums; 2 are two samples."""

    divided: float = 1.0
    whole: float = 1.0


_ALL = Shares()


def times_of(part: Part, device: Device | None, shares: Shares = _ALL) -> PassTimes:
    """Return a layer's durations: measured ones as they are, else FLOPs by the device's speed, and memory's time.

    Raises ValueError for a layer with FLOPs and no durations, where there is no device.
    """
    if part.measured_s is not None:
        forward_s, backward_s = part.measured_s
        return PassTimes(forward_s * shares.divided, backward_s * shares.divided)
    numbers = part.numbers
    if device is None:
        if numbers.flops:
            raise ValueError(f"layer {part.name!r} has neither durations nor a device that computes it")
        return PassTimes(0.0, 0.0)
    computing_s = shares.divided * numbers.flops / device.speed_flops_per_s
    moved = numbers.moved
    moving_s = _moving_s(part, device, (moved.scores + moved.divided) * shares.divided + moved.whole * shares.whole)
    return PassTimes(computing_s + moving_s, BACKWARD_FLOPS * computing_s + BACKWARD_MOVES * moving_s)


def scores_s(part: Part, device: Device | None, shares: Shares = _ALL) -> float:
    """Return how long the forward pass takes for attention's scores alone; of measured durations, by their FLOPs."""
    numbers = part.numbers
    if not numbers.score_flops:
        return 0.0
    if part.measured_s is not None or device is None:
        return times_of(part, device, shares).forward_s * numbers.score_flops / numbers.flops
    computing_s = numbers.score_flops / device.speed_flops_per_s
    return (computing_s + _moving_s(part, device, numbers.moved.scores)) * shares.divided


def _moving_s(part: Part, device: Device, elements: float) -> float:
    return elements * part.element_bytes / device.memory_bytes_per_s if device.memory_bytes_per_s else 0.0


def total_times(parts: Sequence[Part], device: Device | None) -> PassTimes:
    """Return the durations of layers one after the other. Raises ValueError as ``times_of`` does."""
    times = [times_of(part, device) for part in parts]
    return PassTimes(sum(each.forward_s for each in times), sum(each.backward_s for each in times))


def device_for(model: ModelDescription, given: Device | None) -> Device | None:
    """Return what a job computes a model on: the device that the job gives, else the model's own."""
    return given or model.device
