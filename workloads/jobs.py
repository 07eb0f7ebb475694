"""The jobs of a scenario, placed on a fabric and expanded into task graphs: what runners and measures work with."""

from dataclasses import dataclass

from topologies.fabric import Fabric
from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.placement import Placement, place
from workloads.scenario import JobSpecification, Scenario
from workloads.task_graph import GroupTransfer, TaskGraph
from workloads.told import TRUTH, ToldFactors


@dataclass(frozen=True, slots=True)
class Profile:
    """An iteration as Crux sees one (section 4.2): a compute phase, and a communication that begins inside it.

    ``compute_s`` is the iteration with communication that takes no time, ``comm_start`` the fraction of it after which
    the first flow is released. ``work`` is W (section 3): GPU-seconds of computation per iteration, or FLOPs where the
    workload gives them.
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A job of a scenario, where it runs, and what one of its iterations does."""

    specification: JobSpecification
    placement: Placement
    graph: TaskGraph
    told: ToldFactors = TRUTH

    @property
    def name(self) -> str:
        return self.specification.name

    @property
    def hosts(self) -> tuple[str, ...]:
        """The job's hosts, in its own order."""
        return tuple(self.placement.gpus)

    @property
    def gpus(self) -> int:
        """GPUs that the job holds."""
        return len(self.placement.gpus) * self.specification.gpus_per_host

    @property
    def computing_gpu_seconds(self) -> float:
        """GPU-seconds of computation per iteration."""
        return self.graph.computing_host_seconds * self.specification.gpus_per_host

    @property
    def profile(self) -> Profile:
        """The truth, which the job knows."""
        run = ZeroCommunicationRun.of(self.graph)
        releases = (
            start_s
            for task, start_s in zip(self.graph.tasks, run.start_s, strict=True)
            if isinstance(task, GroupTransfer)
        )
        flops = self.specification.workload.flops
        return Profile(
            run.duration_s,
            min(releases, default=run.duration_s) / run.duration_s,
            self.computing_gpu_seconds if flops is None else flops,
        )

    @property
    def told_profile(self) -> Profile:
        """What the job tells the controller."""
        truth = self.profile
        return Profile(truth.compute_s, self.told.of_comm_start(truth.comm_start), truth.work * self.told.work)


def training_jobs(scenario: Scenario, fabric: Fabric) -> tuple[TrainingJob, ...]:
    """The scenario's jobs in its order. Raises ValueError where GPUs do not suffice."""
    return tuple(
        TrainingJob(
            job,
            placement,
            expand(job.workload, placement),
            ToldFactors.drawn(scenario.profile_error, scenario.seed, job.name),
        )
        for job, placement in zip(scenario.jobs, place(scenario, fabric), strict=True)
    )
