"""What the network has done for a job, as its process sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class State(StrEnum):
    """How far a process has come."""

    WAITING = "waiting"
    """There is no process group of several processes yet."""
    PROFILING = "profiling"
    """Iterations are measured."""
    REGISTERING = "registering"
    """The controller has been told, and has not answered yet."""
    REGISTERED = "registered"
    """The controller knows the job."""
    PLAIN = "plain"
    """The job runs as it would without us; ``note`` says why."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What ``stats`` returns.

    Attributes:
        state: How far this process has come.
        job: The job's name.
        rank: The rank of this process; None before it has one.
        note: What there is to say, such as why nothing is registered.
        iterations: Iterations that this process has ended.
        collectives: Collectives that it has issued.
        plan_number: The Plan in force; None before the first.
        levels: By flow group, the level of what this process sends for it; 7 is the most urgent.
        iteration_s: The median of the last iterations.
        iteration_before_s: The median of those before the first level was in force.
        compute_s: How long an iteration computes, as it was measured.
        sent_bytes: Payload that this process has sent over its groups' connections.
        retransmissions: Segments of these connections that were sent again.
        ignored_directions: In the first rank, how often the controller told a group that compresses nonsense.
    """

    state: State
    job: str
    rank: int | None = None
    note: str = ""
    iterations: int = 0
    collectives: int = 0
    plan_number: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    iteration_s: float | None = None
    iteration_before_s: float | None = None
    compute_s: float | None = None
    sent_bytes: int = 0
    retransmissions: int = 0
    ignored_directions: int = 0

    def scalars(self, prefix: str = "trainyard/") -> dict[str, float]:
        """Return the numbers by name, as TensorBoard, W&B and MLflow log them.

        wandb.log(hostlib.torch.stats().scalars(), step=step)
        """
        named = {
            "iterations": self.iterations,
            "collectives": self.collectives,
            "iteration_s": self.iteration_s,
            "iteration_before_s": self.iteration_before_s,
            "compute_s": self.compute_s,
            "sent_bytes": self.sent_bytes,
            "retransmissions": self.retransmissions,
            "plan_number": self.plan_number,
            **{f"level/{group}": level for group, level in self.levels.items()},
        }
        return {f"{prefix}{name}": float(value) for name, value in named.items() if value is not None}
