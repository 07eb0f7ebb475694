"""The admission of a job's task graph: it is held against the flow groups of the job."""

from collections.abc import Sequence
from itertools import chain

from controller.registry.errors import CommitError, InvalidFieldError, UnknownJobError
from controller.registry.jobs import RegisteredFlowGroup, RegisteredJob
from controller.registry.requests import TaskGraphRequest, TransferRequest
from policies.job import MAX_COMPUTE_S
from policies.task_graph import MAX_TASKS, Computation, Task, TaskGraph, Transfer
from topologies.printable import quoted

MAX_DEPENDENCIES = 1_000_000
"""Of one job's tasks; more are refused."""


class GraphAdmission:
    """Admits the task graph that a job reports, if it reports one.

    ``admit`` takes some tenths of a second for the largest graph. It may run in a thread, since it only reads what does
    not change. Meanwhile no other graph or group of the job may be admitted.
    """

    def __init__(self, job: RegisteredJob, request: TaskGraphRequest | None) -> None:
        self._job = job
        self._request = request
        self._graph: TaskGraph | None = None

    def admit(self, new: Sequence[RegisteredFlowGroup] = ()) -> None:
        """Hold the graph against the groups that the job has and gets. Raises InvalidFieldError, naming the field."""
        if self._request is not None:
            sizes = {group.name: len(group.flows) for group in chain(self._job.flow_groups, new)}
            graph, known = admitted_graph(self._request, sizes), self._job.task_graph
            # The same object where nothing has changed: nobody has to compare it again.
            self._graph = known if graph == known else graph

    def graph_of(self, job: RegisteredJob, *, has_new_groups: bool) -> TaskGraph | None:
        """The graph that the job has from now on; one that does not send new groups is dropped.

        Raises:
            UnknownJobError: This is another job.
            CommitError: Groups that the graph sends are not stored after all.
        """
        if job.arrival_s != self._job.arrival_s:
            raise UnknownJobError(f"job: {quoted(job.request.name)} has been registered anew")
        if self._request is None:
            return None if has_new_groups else job.task_graph
        if len(job.flow_groups) != len(self._job.flow_groups):
            raise CommitError("task_graph: flow groups that were registered before it are not stored")
        return self._graph


def admitted_graph(request: TaskGraphRequest, num_flows: dict[str, int]) -> TaskGraph:
    """The graph of a job with these flow groups, by name and in order, with so many flows each.

    Raises InvalidFieldError, naming the field, where the graph is not valid, or does not send every flow once.
    """
    if len(request.tasks) > MAX_TASKS:
        raise InvalidFieldError(f"task_graph.tasks: a job has room for {MAX_TASKS:,}, not for {len(request.tasks):,}")
    if (dependencies := sum(len(task.after) for task in request.tasks)) > MAX_DEPENDENCIES:
        raise InvalidFieldError(
            f"task_graph.tasks: a job has room for {MAX_DEPENDENCIES:,} dependencies, not for {dependencies:,}"
        )
    first: dict[str, int] = {}
    num_all = 0
    for name, number in num_flows.items():
        first[name] = num_all
        num_all += number
    tasks = tuple(
        _admitted_transfer(task, first, num_flows, f"task_graph.tasks[{number}]")
        if isinstance(task, TransferRequest)
        else _admitted_computation(task, f"task_graph.tasks[{number}]")
        for number, task in enumerate(request.tasks)
    )
    try:
        graph = TaskGraph(tasks, request.is_guessed)
    except ValueError as error:
        raise InvalidFieldError(f"task_graph.{error}") from error
    if graph.num_flows < num_all:
        raise InvalidFieldError(f"task_graph.tasks: no transfer sends {_first_unsent(graph, num_flows)}")
    return graph


def _admitted_computation(task: Computation, field: str) -> Task:
    if not task.duration_s <= MAX_COMPUTE_S:
        raise InvalidFieldError(f"{field}.duration_s: must be at most {MAX_COMPUTE_S:g}, not {task.duration_s}")
    return task


def _admitted_transfer(task: TransferRequest, first: dict[str, int], num_flows: dict[str, int], field: str) -> Task:
    if task.flow_group not in first:
        raise InvalidFieldError(f"{field}.flow_group: the job has none named {quoted(task.flow_group)}")
    in_group = num_flows[task.flow_group]
    if task.flows and max(task.flows) >= in_group:
        raise InvalidFieldError(
            f"{field}.flows: flow group {task.flow_group!r} has flows 0 to {in_group - 1}, not {max(task.flows)}"
        )
    flows = task.flows or range(in_group)
    return Transfer(tuple(first[task.flow_group] + flow for flow in flows), task.after)


def _first_unsent(graph: TaskGraph, num_flows: dict[str, int]) -> str:
    """The first flow that a graph does not send, in words."""
    sent = set(chain.from_iterable(task.flows for task in graph.tasks if isinstance(task, Transfer)))
    keys = ((name, flow) for name, number in num_flows.items() for flow in range(number))
    name, flow = next(key for position, key in enumerate(keys) if position not in sent)
    return f"flow {flow} of flow group {name!r}"
