"""What advice says: ways to divide a job in order of their iteration times, and where the time of two of them goes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from workloads.combined.memory import MemoryUse
from workloads.combined_workload import CombinedWorkload

DIMENSIONS = ("tensor", "context", "expert", "pipeline", "data")
"""Parallelisms that communicate."""


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """A link by the names of its ends, and the share of an iteration in which the job keeps it busy.

    Of parallel links it is the busiest. ``busy_s`` has by dimension how many seconds of an iteration its bytes take.
    """

    name: str
    utilisation: float
    busy_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Where the time of an iteration goes, the mean over all GPUs; all parts together are the iteration time.

    Attributes:
        compute_s: Computation.
        bubble_s: Waiting for other pipeline stages to compute.
        exposed_s: By dimension, communication that nothing is computed meanwhile, inside hosts and between them.
        links: The busiest links, the busiest first.
    """

    compute_s: float
    bubble_s: float
    exposed_s: Mapping[str, float]
    links: tuple[LinkLoad, ...]

    @property
    def iteration_s(self) -> float:
        """The iteration time."""
        return self.compute_s + self.bubble_s + sum(self.exposed_s.values())


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way to divide the job.

    Attributes:
        workload: The job's workload, divided in this way.
        data: How many replicas there are.
        memory: What the GPU that needs most keeps.
        fits: Whether that is no more than a GPU has; true where nobody knows how much that is.
        predicted_s: The predicted iteration time.
        num_flows: Flows of an iteration.
        simulated_s: The iteration time on the simulator; None where it was not simulated.
        reason: Why it cannot be simulated; None where it can.
    """

    workload: CombinedWorkload
    data: int
    memory: MemoryUse
    fits: bool
    predicted_s: float
    num_flows: int
    simulated_s: float | None = None
    reason: str | None = None

    @property
    def iteration_s(self) -> float:
        """The iteration time, simulated if it was simulated."""
        return self.predicted_s if self.simulated_s is None else self.simulated_s

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``trainyard advise -o json`` prints of it."""
        workload = self.workload
        return {
            "tensor": workload.tensor,
            "context": workload.context,
            "expert": workload.expert,
            "pipeline": workload.pipeline,
            "data": self.data,
            "order": workload.order,
            "micro_batch": workload.micro_batch,
            "schedule": workload.schedule,
            "chunks": workload.chunks_per_stage,
            "zero": workload.zero,
            "recompute": workload.recompute,
            "iteration_s": self.iteration_s,
            "predicted_s": self.predicted_s,
            "simulated_s": self.simulated_s,
            "num_flows": self.num_flows,
            "memory_bytes": self.memory.total_bytes,
            "memory": asdict(self.memory),
            "fits": self.fits,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for one job.

    Attributes:
        job: Its name.
        model: The name of its model.
        policy: The policy under which alternatives were simulated.
        gpus: Its number of GPUs.
        memory_bytes: What a GPU has; None where nobody says.
        given: The parallelism that was asked about; None where none was.
        given_shares: Where its time goes; None where it was not simulated.
        alternatives: The best ones, those that were simulated first, each in order of their iteration times.
        best_shares: Where the time of the first goes; None where it was not simulated.
        too_large: Some that would be fast, but need more memory than a GPU has.
        num_ways: How many ways were compared.
        num_predicted: How many of them were predicted; quick bounds exclude the others.
        is_complete: Whether no way that was not simulated is expected to be faster by more than 1 %.
    """

    job: str
    model: str
    policy: str
    gpus: int
    memory_bytes: float | None
    given: Alternative | None
    given_shares: TimeShares | None
    alternatives: tuple[Alternative, ...]
    best_shares: TimeShares | None
    too_large: tuple[Alternative, ...]
    num_ways: int
    num_predicted: int
    is_complete: bool

    @property
    def best(self) -> Alternative:
        """The first choice."""
        return self.alternatives[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``trainyard advise -o json`` prints."""
        return {
            "job": self.job,
            "model": self.model,
            "policy": self.policy,
            "gpus": self.gpus,
            "memory_bytes": self.memory_bytes,
            "given": None if self.given is None else self.given.to_dict(),
            "given_time": _shares_object(self.given_shares),
            "best_time": _shares_object(self.best_shares),
            "alternatives": [each.to_dict() for each in self.alternatives],
            "too_large": [each.to_dict() for each in self.too_large],
            "num_ways": self.num_ways,
            "num_predicted": self.num_predicted,
            "is_complete": self.is_complete,
        }


def _shares_object(shares: TimeShares | None) -> dict[str, Any] | None:
    if shares is None:
        return None
    return {
        "compute_s": shares.compute_s,
        "bubble_s": shares.bubble_s,
        "exposed_s": dict(shares.exposed_s),
        "links": [
            {"link": each.name, "utilisation": each.utilisation, "busy_s": dict(each.busy_s)} for each in shares.links
        ],
    }
