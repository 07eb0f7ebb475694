"""Jobs of a trace for a simulation: arrival, requested GPUs, and what an iteration computes and sends."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from topologies.fabric import Fabric
from workloads.expansion import expand
from workloads.jobs import TrainingJob
from workloads.models import Model
from workloads.placement import Placement
from workloads.scenario import JobSpecification
from workloads.schedulers.admission import Admit
from workloads.schedulers.cluster import Allocation, Cluster, GpuRequest, split_over_hosts
from workloads.schedulers.schedule import Schedule, schedule
from workloads.traces.assumptions import Assumptions
from workloads.traces.cleaning import LoggedJob
from workloads.workload import Pattern, PhasesWorkload


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A job of a trace; times in seconds since the first submission.

    It ends after ``iterations``: its logged run time over ``ideal_iteration_s``, the time of an isolated iteration.
    Slower iterations make the job longer. The number of iterations need not be whole.
    """

    request: GpuRequest
    label: str
    workload: PhasesWorkload
    ideal_iteration_s: float

    @property
    def iterations(self) -> float:
        """Iterations that the job completes before it ends."""
        return self.request.run_time_s / self.ideal_iteration_s

    @property
    def sends(self) -> bool:
        """Whether the job uses the network."""
        return self.request.num_hosts > 1 and bool(self.workload.bytes)

    def sending(self, factor: float) -> "SimulatedJob":
        """Return the job with ``factor`` times the bytes per iteration and the same run time."""
        compute_s, sending_s = self.request.stages_s[0], self.request.stages_s[1] * factor
        return replace(
            self,
            request=replace(self.request, stages_s=(compute_s, sending_s)),
            workload=self.workload.model_copy(update={"bytes": (self.workload.bytes or 0.0) * factor}),
            ideal_iteration_s=max(compute_s, self.workload.comm_start * compute_s + sending_s),
        )


def simulated_jobs(jobs: Iterable[LoggedJob], assumptions: Assumptions) -> tuple[SimulatedJob, ...]:
    """Convert logged jobs, in order of arrival; ``split_over_hosts`` shapes them, whatever hosts the trace names."""
    ordered = sorted(jobs, key=lambda job: job.submitted_s)
    return tuple(_simulated(job, ordered[0].submitted_s, assumptions) for job in ordered)


def scheduled(jobs: Sequence[SimulatedJob], cluster: Cluster, admit: Admit) -> Schedule:
    """Schedule the jobs as if each took its logged run time."""
    return schedule((job.request for job in jobs), cluster, admit)


def _simulated(job: LoggedJob, first_s: float, assumptions: Assumptions) -> SimulatedJob:
    fabric = assumptions.fabric
    num_hosts, gpus_per_host = split_over_hosts(job.gpus, fabric.gpus_per_host)
    model = assumptions.model(job.model, job.gpus)
    # In a ring all-reduce every host sends 2 (H - 1) / H of the gradients, as in the workloads of the model table.
    sent_bytes = 2 * (num_hosts - 1) / num_hosts * model.gradient_bytes
    workload = PhasesWorkload(
        type="phases",
        compute_s=model.compute_s,
        comm_start=model.comm_start,
        bytes=sent_bytes,
        pattern=Pattern.RING,
        flows_per_pair=model.flows_per_pair,
    )
    sending_s = _sending_s(sent_bytes, model, gpus_per_host, assumptions)
    ideal_s = max(model.compute_s, model.comm_start * model.compute_s + sending_s)
    # The resources of an iteration are the GPUs and the network.
    stages_s = (model.compute_s, sending_s)
    request = GpuRequest(job.name, num_hosts, gpus_per_host, job.submitted_s - first_s, job.run_time_s, stages_s)
    return SimulatedJob(request, job.model, workload, ideal_s)


def _sending_s(sent_bytes: float, model: Model, gpus_per_host: int, assumptions: Assumptions) -> float:
    """Return how long a host sends if only the NICs beside its GPUs limit it; flows use these NICs in turn."""
    fabric = assumptions.fabric
    nics = fabric.nics[fabric.hosts[0]]
    num_nics = max(1, gpus_per_host * len(nics) // fabric.gpus_per_host)
    num_flows = model.flows_per_pair or num_nics
    busiest_share = math.ceil(num_flows / num_nics) / num_flows
    return busiest_share * sent_bytes * 8 / fabric.rates_bps[nics[0].link]


def placed_job(job: SimulatedJob, allocation: Allocation, fabric: Fabric, start_s: float) -> TrainingJob:
    """Return the job on its GPUs, with the task graph of an iteration."""
    placement = Placement.on(fabric, allocation)
    # Skip validation: a trace lasts longer than scenarios may.
    specification = JobSpecification.model_construct(
        name=job.request.name,
        hosts=tuple(allocation),
        gpus_per_host=job.request.gpus_per_host,
        arrival_s=start_s,
        iterations=max(1, int(job.iterations)),
        workload=job.workload,
    )
    return TrainingJob(specification, placement, expand(job.workload, placement))
