"""What real ranks are told to do, and what they say of it: JSON in files, for they are processes of their own."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from hostlib.compression.control.cost import Linear, MeasuredCosts


@dataclass(frozen=True, slots=True)
class Task:
    """A number of steps under one method.

    Attributes:
        method: Its name.
        unsettled_steps: How many are not measured, at first.
        steps: How many are measured after them.
    """

    method: str
    unsettled_steps: int
    steps: int


@dataclass(frozen=True, slots=True)
class RankPlan:
    """What all ranks of a job do.

    Attributes:
        model: Its name.
        bucket_mib: DDP's ``bucket_cap_mb``.
        compute_s: Of a step, in wall-clock time.
        tasks: One after the other.
        results: The path of the file of the results, which the first rank writes.
    """

    model: str
    bucket_mib: float
    compute_s: float
    tasks: tuple[Task, ...]
    results: str

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RankPlan":
        """Return the plan of this JSON."""
        found = json.loads(text)
        return cls(**found | {"tasks": tuple(Task(**task) for task in found["tasks"])})


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What became of a task, as the first rank saw it.

    Attributes:
        method: Its name.
        step_s: Of each measured step, in wall-clock time.
        idle_share: Of the cores that ranks may use, while they ran.
        costs: What codecs and hops took when the task began, as the ranks have agreed; None: it has no codecs.
        ratio: Share of the gradients that the last step sent.
    """

    method: str
    step_s: tuple[float, ...]
    idle_share: float
    costs: MeasuredCosts | None
    ratio: float


def results_to_json(results: list[TaskResult]) -> str:
    """Return results as JSON."""
    return json.dumps([asdict(result) for result in results])


def results_from_json(text: str) -> list[TaskResult]:
    """Return the results of this JSON."""
    return [
        TaskResult(**found | {"step_s": tuple(found["step_s"]), "costs": _costs(found["costs"])})
        for found in json.loads(text)
    ]


def _costs(found: dict[str, Any] | None) -> MeasuredCosts | None:
    if found is None:
        return None
    costs: dict[str, Any] = {name: Linear(**cost) if isinstance(cost, dict) else cost for name, cost in found.items()}
    return MeasuredCosts(**costs)
