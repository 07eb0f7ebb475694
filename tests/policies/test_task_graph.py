import math

import pytest

from policies import task_graph
from policies.task_graph import Computation, Task, TaskGraph, Transfer


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ((Transfer((0,)),), "tasks: an iteration must compute something"),
        ((Computation(1.0, (0,)),), r"tasks\[0\].after: a task waits for earlier ones"),
        (
            (Computation(1.0), Transfer((0,), (2,)), Computation(1.0)),
            r"tasks\[1\].after: a task waits for earlier ones",
        ),
        ((Computation(1.0), Transfer((0,), (-1,))), r"tasks\[1\].after: a task waits for earlier ones"),
        ((Computation(0.0),), r"tasks\[0\].duration_s: must be positive and finite, not 0.0"),
        ((Computation(math.nan),), r"tasks\[0\].duration_s: must be positive and finite, not nan"),
        ((Computation(math.inf),), r"tasks\[0\].duration_s: must be positive and finite, not inf"),
        ((Computation(1.0), Transfer(())), r"tasks\[1\].flows: must name at least one flow"),
        ((Computation(1.0), Transfer((3, 3))), r"tasks\[1\].flows: a flow is sent once an iteration"),
        ((Computation(1.0), Transfer((3,)), Transfer((3,))), r"tasks\[2\].flows: a flow is sent once an iteration"),
    ],
)
def test_what_no_iteration_can_be_is_refused_by_task_and_field(tasks: tuple[Task, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TaskGraph(tasks)


def test_a_job_has_room_for_so_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_graph, "MAX_TASKS", 2)
    TaskGraph((Computation(1.0), Computation(1.0)))
    with pytest.raises(ValueError, match="tasks: a job has room for 2, this would be 3"):
        TaskGraph((Computation(1.0),) * 3)
