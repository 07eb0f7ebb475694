"""Baseline placements: by affinity and at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest


def hosts_by_affinity(by_switch: Sequence[Sequence[str]], count: int) -> tuple[str, ...]:
    """Choose ``count`` hosts under as few switches as possible.

    If one switch has enough hosts, choose the switch with the fewest that suffices. Otherwise fill the switches with
    the most hosts first. Returns fewer hosts where there are not enough.
    """
    enough = [hosts for hosts in by_switch if len(hosts) >= count]
    order = [min(enough, key=len)] if enough else sorted(by_switch, key=len, reverse=True)
    return tuple(host for hosts in order for host in hosts)[:count]


def place_by_affinity(state: ClusterState, request: GpuRequest) -> Allocation | None:
    """Choose hosts in as few racks as possible, preferring hosts with few free GPUs.

    This is the placement of the cluster in Crux (section 6.1). A request for one host gets the fullest host that
    suffices, whatever its rack; of equally full hosts, the one in the fuller rack.
    """
    candidates = [
        sorted(state.hosts_with_free(rack, request.gpus_per_host), key=lambda host: len(state.free[host]))
        for rack in state.cluster.racks
    ]
    if request.num_hosts == 1:
        fullest = min(
            (rack for rack in candidates if rack), key=lambda rack: (len(state.free[rack[0]]), len(rack)), default=[]
        )
        hosts = tuple(fullest[:1])
    else:
        hosts = hosts_by_affinity(candidates, request.num_hosts)
    if len(hosts) < request.num_hosts:
        return None
    return {host: state.free[host][: request.gpus_per_host] for host in hosts}


@dataclass(frozen=True, slots=True)
class RandomPlacement:
    """Place on random hosts and random GPUs; the seed, the request and the state alone decide."""

    seed: int

    def __call__(self, state: ClusterState, request: GpuRequest) -> Allocation | None:
        """Choose hosts, every set of them with the same probability; return None where there are too few."""
        hosts = state.hosts_with_free(state.cluster.hosts, request.gpus_per_host)
        if len(hosts) < request.num_hosts:
            return None
        random = Random(f"{self.seed} {request.name}")
        return {
            host: tuple(sorted(random.sample(state.free[host], request.gpus_per_host)))
            for host in random.sample(hosts, request.num_hosts)
        }
