"""The jobs of a trace as a simulation needs them: when each comes, the GPUs it asks for, what it computes and sends."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from workloads.models import Model
from workloads.schedulers.cluster import Cluster, GpuRequest, host_shape
from workloads.schedulers.queue import Admit
from workloads.schedulers.schedule import Schedule, schedule
from workloads.traces.assumptions import Assumptions
from workloads.traces.cleaning import LoggedJob
from workloads.workload import Pattern, PhasesWorkload


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A job of a trace; times in seconds from the first submission.

    It is done after ``iterations``, its logged run time over ``ideal_iteration_s``, which an iteration takes with the
    fabric to itself: slower iterations lengthen it. A part of an iteration counts.
    """

    request: GpuRequest
    label: str
    workload: PhasesWorkload
    ideal_iteration_s: float

    @property
    def iterations(self) -> float:
        return self.request.run_time_s / self.ideal_iteration_s

    @property
    def sends(self) -> bool:
        """Whether it uses the network."""
        return self.request.num_hosts > 1 and bool(self.workload.bytes)

    def sending(self, factor: float) -> "SimulatedJob":
        """The same job where an iteration sends so many times the bytes; its run time stays."""
        compute_s, sending_s = self.request.stages_s[0], self.request.stages_s[1] * factor
        return replace(
            self,
            request=replace(self.request, stages_s=(compute_s, sending_s)),
            workload=self.workload.model_copy(update={"bytes": (self.workload.bytes or 0.0) * factor}),
            ideal_iteration_s=max(compute_s, self.workload.comm_start * compute_s + sending_s),
        )


def simulated_jobs(jobs: Iterable[LoggedJob], assumptions: Assumptions) -> tuple[SimulatedJob, ...]:
    """The jobs in order of arrival, on as many hosts as ``host_shape`` says, not on those that the trace names."""
    ordered = sorted(jobs, key=lambda job: job.submitted_s)
    return tuple(_simulated(job, ordered[0].submitted_s, assumptions) for job in ordered)


def scheduled(jobs: Sequence[SimulatedJob], cluster: Cluster, admit: Admit) -> Schedule:
    """Where and when the jobs would run if each took as long as it was logged to."""
    return schedule((job.request for job in jobs), cluster, admit)


def _simulated(job: LoggedJob, first_s: float, assumptions: Assumptions) -> SimulatedJob:
    fabric = assumptions.fabric
    num_hosts, gpus_per_host = host_shape(job.gpus, fabric.gpus_per_host)
    model = assumptions.model(job.model, job.gpus)
    # By a ring every host sends 2 (H - 1) / H of what is reduced, as the workloads of the model table do.
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
    # Of an iteration the GPUs have their computation, the network what the hosts exchange.
    stages_s = (model.compute_s, sending_s)
    request = GpuRequest(job.name, num_hosts, gpus_per_host, job.submitted_s - first_s, job.run_time_s, stages_s)
    return SimulatedJob(request, job.model, workload, ideal_s)


def _sending_s(sent_bytes: float, model: Model, gpus_per_host: int, assumptions: Assumptions) -> float:
    """How long a host sends if only its NICs hold it up: those beside its GPUs, which its flows take in turn."""
    fabric = assumptions.fabric
    nics = fabric.nics[fabric.hosts[0]]
    num_nics = max(1, gpus_per_host * len(nics) // fabric.gpus_per_host)
    num_flows = model.flows_per_pair or num_nics
    busiest_share = math.ceil(num_flows / num_nics) / num_flows
    return busiest_share * sent_bytes * 8 / fabric.rates_bps[nics[0].link]
