"""The jobs of a scenario, placed on a fabric and expanded into task graphs: what runners and measures work with."""

from dataclasses import dataclass

from topologies.fabric import Fabric
from workloads import phases
from workloads.placement import Placement, place
from workloads.scenario import JobSpecification, Scenario
from workloads.task_graph import TaskGraph


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A job of a scenario, where it runs, and what one of its iterations does."""

    specification: JobSpecification
    placement: Placement
    graph: TaskGraph

    @property
    def name(self) -> str:
        return self.specification.name

    @property
    def computing_gpu_seconds(self) -> float:
        """GPU-seconds of computation per iteration."""
        return self.graph.computing_host_seconds * self.specification.gpus_per_host


def training_jobs(scenario: Scenario, fabric: Fabric) -> tuple[TrainingJob, ...]:
    """The scenario's jobs in its order. Raises ValueError where GPUs do not suffice."""
    return tuple(
        TrainingJob(job, placement, phases.expand(job, placement))
        for job, placement in zip(scenario.jobs, place(scenario, fabric), strict=True)
    )
