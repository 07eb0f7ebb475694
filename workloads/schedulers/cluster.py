"""The state on which every job scheduler decides: the cluster, its free GPUs, and what a job asks for."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from topologies.fabric import Fabric

Allocation = Mapping[str, tuple[int, ...]]
"""GPUs by host, in ascending order."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """A job's request for GPUs, the same number on each of its hosts.

    ``run_time_s`` is the run time on GPUs of its own, for schedulers that order by length. ``stages_s`` is for Muri:
    how long an iteration uses each resource. All jobs list the same resources in the same order.
    """

    name: str
    num_hosts: int
    gpus_per_host: int
    arrival_s: float = 0.0
    run_time_s: float = 0.0
    stages_s: tuple[float, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs on all hosts together."""
        return self.num_hosts * self.gpus_per_host


def split_over_hosts(gpus: int, gpus_per_host: int) -> tuple[int, int]:
    """Split a job's GPUs evenly over hosts; return the number of hosts and the GPUs on each, as many as possible."""
    if gpus < 1:
        raise ValueError(f"expected at least 1 GPU, got {gpus}")
    on_each = next(count for count in range(min(gpus, gpus_per_host), 0, -1) if gpus % count == 0)
    return gpus // on_each, on_each


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts by rack, and racks by pod. Hosts of one rack connect to the same ToR switches."""

    pods: tuple[tuple[tuple[str, ...], ...], ...]
    gpus_per_host: int

    @classmethod
    def of_fabric(cls, fabric: Fabric) -> Self:
        """Group a fabric's hosts into racks by the switch of their first NIC; all racks form one pod."""
        racks: defaultdict[str, list[str]] = defaultdict(list)
        for host, nics in fabric.nics.items():
            racks[fabric.links[nics[0].link].destination].append(host)
        return cls((tuple(map(tuple, racks.values())),), fabric.gpus_per_host)

    @property
    def racks(self) -> tuple[tuple[str, ...], ...]:
        """All racks in order."""
        return tuple(rack for pod in self.pods for rack in pod)

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts in order."""
        return tuple(host for rack in self.racks for host in rack)

    def fits(self, request: GpuRequest) -> bool:
        """Tell whether an empty cluster could meet the request."""
        return request.gpus_per_host <= self.gpus_per_host and request.num_hosts <= len(self.hosts)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster and its free GPUs by host."""

    cluster: Cluster
    free: Allocation

    @classmethod
    def empty(cls, cluster: Cluster) -> Self:
        """Return the state in which all GPUs are free."""
        return cls(cluster, dict.fromkeys(cluster.hosts, tuple(range(cluster.gpus_per_host))))

    @property
    def num_free(self) -> int:
        """Free GPUs on all hosts together."""
        return sum(map(len, self.free.values()))

    def hosts_with_free(self, hosts: Iterable[str], gpus: int) -> list[str]:
        """Return those of the hosts that have at least ``gpus`` free GPUs, in order."""
        return [host for host in hosts if len(self.free[host]) >= gpus]

    def take(self, allocation: Allocation) -> Self:
        """Return the state after an allocation. Raises ValueError for a GPU that is not free."""
        free = dict(self.free)
        for host, gpus in allocation.items():
            if not set(gpus) <= set(free[host]) or len(set(gpus)) < len(gpus):
                raise ValueError(f"{host}: GPUs {gpus} are not all free, only {free[host]}")
            free[host] = tuple(gpu for gpu in free[host] if gpu not in gpus)
        return type(self)(self.cluster, free)

    def give_back(self, allocation: Allocation) -> Self:
        """Return the state after an allocation ends. Raises ValueError for a GPU that is already free."""
        free = dict(self.free)
        for host, gpus in allocation.items():
            if set(gpus) & set(free[host]):
                raise ValueError(f"{host}: GPUs {gpus} are not all taken, {free[host]} are free")
            free[host] = tuple(sorted((*free[host], *gpus)))
        return type(self)(self.cluster, free)


Place = Callable[[ClusterState, GpuRequest], Allocation | None]
"""Chooses free GPUs for a request, or returns None where there is no room. It depends on its arguments alone."""
