"""Small traces by hand."""

from collections.abc import Mapping, Sequence

from topologies.clos import DumbbellSpecification
from workloads.schedulers.admission import Admit, admit_in_order
from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest
from workloads.traces.simulated_jobs import SimulatedJob
from workloads.workload import Pattern, PhasesWorkload

DUMBBELL = DumbbellSpecification(
    kind="dumbbell", hosts_per_side=2, host_link_gbps=400, bottleneck_gbps=100, delay_us=0, gpus_per_host=8
).build()


def simulated(
    name: str,
    compute_s: float,
    sent_bytes: float,
    ideal_s: float,
    iterations: float,
    *,
    arrival_s: float = 0.0,
    num_hosts: int = 2,
    gpus_per_host: int = 8,
    comm_start: float = 1.0,
    pattern: Pattern = Pattern.PAIRS,
) -> SimulatedJob:
    """Return a job with so many iterations, each of which takes ``ideal_s`` in isolation."""
    workload = PhasesWorkload(
        type="phases", compute_s=compute_s, comm_start=comm_start, bytes=sent_bytes, pattern=pattern, flows_per_pair=1
    )
    request = GpuRequest(name, num_hosts, gpus_per_host, arrival_s, iterations * ideal_s)
    return SimulatedJob(request, "made up", workload, ideal_s)


def on_hosts(hosts: Mapping[str, Sequence[str]]) -> Admit:
    """Return the admission function that starts jobs in order, each on its hosts."""

    def place(state: ClusterState, request: GpuRequest) -> Allocation | None:
        if len(state.hosts_with_free(hosts[request.name], request.gpus_per_host)) < request.num_hosts:
            return None
        return {host: state.free[host][: request.gpus_per_host] for host in hosts[request.name]}

    return admit_in_order(place)
