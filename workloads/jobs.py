"""Training jobs: a scenario's jobs placed on a fabric, with the task graph of an iteration."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from policies import task_graph
from topologies.fabric import Fabric
from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.perturbations import NO_ERROR, ReportingError
from workloads.placement import Placement, place
from workloads.reported_tasks import reported_tasks
from workloads.scenario import JobSpecification, Scenario
from workloads.task_graph import Computation, GroupTransfer, Task, TaskGraph


@dataclass(frozen=True, slots=True)
class IterationProfile:
    """An iteration in the terms of Crux (section 4.2): a compute phase, and a communication that starts inside it.

    ``compute_s`` is the duration with communication that takes no time, ``comm_start`` the fraction of it after which
    the first flow starts. ``work`` is W (section 3): GPU-seconds per iteration, or FLOPs where the workload gives them.
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True)
class TrainingJob:
    """A job of a scenario, its placement, and the task graph of an iteration."""

    specification: JobSpecification
    placement: Placement
    graph: TaskGraph
    reporting_error: ReportingError = NO_ERROR

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.specification.name

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts in the job's own order."""
        return tuple(self.placement.gpus)

    @property
    def gpus(self) -> int:
        """Number of GPUs that the job holds."""
        return len(self.placement.gpus) * self.specification.gpus_per_host

    @property
    def computing_gpu_seconds(self) -> float:
        """GPU-seconds of computation per iteration."""
        return self.graph.computing_host_seconds * self.specification.gpus_per_host

    @property
    def profile(self) -> IterationProfile:
        """The true profile."""
        run = ZeroCommunicationRun.of(self.graph)
        releases = (
            start_s
            for task, start_s in zip(self.graph.tasks, run.start_s, strict=True)
            if isinstance(task, GroupTransfer)
        )
        flops = self.specification.workload.flops
        return IterationProfile(
            run.duration_s,
            min(releases, default=run.duration_s) / run.duration_s,
            self.computing_gpu_seconds if flops is None else flops,
        )

    @property
    def reported_profile(self) -> IterationProfile:
        """The profile that the job reports to the controller."""
        truth = self.profile
        return IterationProfile(
            truth.compute_s,
            self.reporting_error.reported_comm_start(truth.comm_start),
            truth.work * self.reporting_error.work,
        )

    @cached_property
    def played_graph(self) -> task_graph.TaskGraph:
        """The true task graph, as policies and models have it: flows are numbered group after group."""
        return self._numbered(self.graph.tasks)

    @cached_property
    def reported_tasks(self) -> tuple[Task, ...]:
        """The tasks that the job reports to the controller: they agree with the reported profile."""
        return reported_tasks(self.graph, self.profile.comm_start, self.reported_profile.comm_start)

    @cached_property
    def reported_graph(self) -> task_graph.TaskGraph:
        """The task graph that the job reports, in the form of ``played_graph``."""
        return self._numbered(self.reported_tasks)

    def _numbered(self, tasks: Sequence[Task]) -> task_graph.TaskGraph:
        first: dict[str, int] = {}
        number = 0
        for group in self.graph.flow_groups:
            first[group.name] = number
            number += len(group.flows)

        def numbered(task: Task) -> task_graph.Task:
            if isinstance(task, Computation):
                return task_graph.Computation(task.duration_s, task.after)
            return task_graph.Transfer(
                tuple(first[task.group] + flow for flow in self.graph.flows_of(task)), task.after
            )

        return task_graph.TaskGraph(tuple(map(numbered, tasks)))


def training_jobs(scenario: Scenario, fabric: Fabric) -> tuple[TrainingJob, ...]:
    """Place and expand the jobs of a scenario, in its order. Raises ValueError where GPUs do not suffice."""
    return tuple(
        TrainingJob(
            job,
            placement,
            expand(job.workload, placement),
            ReportingError.drawn(scenario.profile_error, scenario.seed, job.name),
        )
        for job, placement in zip(scenario.jobs, place(scenario, fabric), strict=True)
    )
