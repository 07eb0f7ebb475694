"""The GPUs of a cluster, which of them are free, and what a job asks for: what every job scheduler decides on."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from topologies.fabric import Fabric

Allocation = Mapping[str, tuple[int, ...]]
"""GPUs by host, in ascending order."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """GPUs for a job, as many on every one of its hosts.

    Schedulers that order by length use ``run_time_s``, the job's time on GPUs of its own; Muri also ``stages_s``, what
    an iteration takes of each resource, all jobs naming the same resources in the same order.
    """

    name: str
    num_hosts: int
    gpus_per_host: int
    arrival_s: float = 0.0
    run_time_s: float = 0.0
    stages_s: tuple[float, ...] = ()

    @property
    def gpus(self) -> int:
        return self.num_hosts * self.gpus_per_host


def host_shape(gpus: int, gpus_per_host: int) -> tuple[int, int]:
    """On how many hosts a job has how many of its GPUs: as many on each as can be while all have the same."""
    if gpus < 1:
        raise ValueError(f"expected at least 1 GPU, got {gpus}")
    on_each = next(count for count in range(min(gpus, gpus_per_host), 0, -1) if gpus % count == 0)
    return gpus // on_each, on_each


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts by rack and racks by pod, in order: hosts of a rack hang off the same ToR switches."""

    pods: tuple[tuple[tuple[str, ...], ...], ...]
    gpus_per_host: int

    @classmethod
    def of_fabric(cls, fabric: Fabric) -> Self:
        """Hosts that have their first NIC at one switch are a rack; all racks are one pod."""
        racks: defaultdict[str, list[str]] = defaultdict(list)
        for host, nics in fabric.nics.items():
            racks[fabric.links[nics[0].link].destination].append(host)
        return cls((tuple(map(tuple, racks.values())),), fabric.gpus_per_host)

    @property
    def racks(self) -> tuple[tuple[str, ...], ...]:
        return tuple(rack for pod in self.pods for rack in pod)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(host for rack in self.racks for host in rack)

    def fits(self, request: GpuRequest) -> bool:
        """Whether the request could be met if all GPUs were free."""
        return request.gpus_per_host <= self.gpus_per_host and request.num_hosts <= len(self.hosts)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster and the GPUs that nobody has, by host."""

    cluster: Cluster
    free: Allocation

    @classmethod
    def empty(cls, cluster: Cluster) -> Self:
        """All GPUs are free."""
        return cls(cluster, dict.fromkeys(cluster.hosts, tuple(range(cluster.gpus_per_host))))

    @property
    def num_free(self) -> int:
        return sum(map(len, self.free.values()))

    def having(self, hosts: Iterable[str], gpus: int) -> list[str]:
        """Those of the hosts that have so many GPUs free, in their order."""
        return [host for host in hosts if len(self.free[host]) >= gpus]

    def take(self, allocation: Allocation) -> Self:
        """Without the GPUs given to a job. Raises ValueError where one is not free."""
        free = dict(self.free)
        for host, gpus in allocation.items():
            if not set(gpus) <= set(free[host]) or len(set(gpus)) < len(gpus):
                raise ValueError(f"{host}: GPUs {gpus} are not all free, only {free[host]}")
            free[host] = tuple(gpu for gpu in free[host] if gpu not in gpus)
        return type(self)(self.cluster, free)

    def give_back(self, allocation: Allocation) -> Self:
        """With the GPUs that a job had. Raises ValueError where one is free already."""
        free = dict(self.free)
        for host, gpus in allocation.items():
            if set(gpus) & set(free[host]):
                raise ValueError(f"{host}: GPUs {gpus} are not all taken, {free[host]} are free")
            free[host] = tuple(sorted((*free[host], *gpus)))
        return type(self)(self.cluster, free)


Place = Callable[[ClusterState, GpuRequest], Allocation | None]
"""Chooses GPUs that are free for a request; None where there is no room. It depends on nothing else."""
