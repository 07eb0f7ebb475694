"""A job of a trace on its GPUs."""

from topologies.fabric import Fabric
from workloads.expansion import expand
from workloads.jobs import TrainingJob
from workloads.placement import Placement
from workloads.scenario import JobSpecification
from workloads.schedulers.cluster import Allocation
from workloads.traces.sequence import SimulatedJob


def placed(job: SimulatedJob, allocation: Allocation, fabric: Fabric, start_s: float) -> TrainingJob:
    """The job on its GPUs, with what one of its iterations does."""
    placement = Placement.on(fabric, allocation)
    # Not validated: a trace lasts longer than scenarios may.
    specification = JobSpecification.model_construct(
        name=job.request.name,
        hosts=tuple(allocation),
        gpus_per_host=job.request.gpus_per_host,
        arrival_s=start_s,
        iterations=max(1, int(job.iterations)),
        workload=job.workload,
    )
    return TrainingJob(specification, placement, expand(job.workload, placement))
