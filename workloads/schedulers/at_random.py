"""Placement at random: any hosts that have the GPUs free, and any of their GPUs."""

from dataclasses import dataclass
from random import Random

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest


@dataclass(frozen=True, slots=True)
class RandomPlacement:
    """A placement that seed, request and state decide alone."""

    seed: int

    def __call__(self, state: ClusterState, request: GpuRequest) -> Allocation | None:
        """As many hosts as asked for, every set of them as likely as any other; None where there are too few."""
        hosts = state.having(state.cluster.hosts, request.gpus_per_host)
        if len(hosts) < request.num_hosts:
            return None
        random = Random(f"{self.seed} {request.name}")
        return {
            host: tuple(sorted(random.sample(state.free[host], request.gpus_per_host)))
            for host in random.sample(hosts, request.num_hosts)
        }
