"""What a process of a job does, as it is seen: collectives, waits, and steps of the optimizer."""

from typing import NamedTuple

from hostlib.torch.pipelines import Pass


class Issue(NamedTuple):
    """A collective begins.

    ``size_bytes``, ``peer`` and ``splits_bytes`` are those of ``algorithms.Collective``; ``group`` is the name of its
    process group, ``number`` counts the collectives of this process.
    """

    number: int
    time_ns: int
    operation: str
    group: str
    size_bytes: int
    peer: int | None
    splits_bytes: tuple[int, ...]


class Completion(NamedTuple):
    """The collective with this number has ended."""

    number: int
    time_ns: int


class Wait(NamedTuple):
    """The process has waited, for the collective with this number where that is known."""

    number: int | None
    begin_ns: int
    end_ns: int


class StepBegin(NamedTuple):
    """The optimizer begins its step: all gradients are there."""

    time_ns: int


class StepEnd(NamedTuple):
    """An optimizer has ended its step; ``optimizer`` tells it from others."""

    time_ns: int
    optimizer: int = 0


class StagePass(NamedTuple):
    """A stage of a pipeline has computed a pass over a micro-batch; ``group`` is the name of the process group."""

    kind: Pass
    group: str
    stage: int
    micro_batch: int
    begin_ns: int
    end_ns: int


Event = Issue | Completion | Wait | StepBegin | StepEnd | StagePass
