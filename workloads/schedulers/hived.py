"""HiveD's cells (Zhao et al., OSDI 2020): GPUs are handed out by buddy allocation along the levels of the cluster.

A cell is a part of the hardware that lies close together: aligned powers of two of a host's GPUs, the host, its rack,
the pod, the cluster. A cell is free when all its GPUs are, so that buddies merge by themselves when they come free.
Who asks gets a free cell of the lowest level that holds it; a larger one is split only where there is none, which keeps
large cells whole. HiveD's virtual clusters, each with a quota of cells, are not modelled: all jobs are one tenant's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest


@dataclass(frozen=True, slots=True, order=True)
class Buddy:
    """An aligned group of GPUs of one host; the order is by size, then by place."""

    size: int
    first: int


def place_in_cells(state: ClusterState, request: GpuRequest) -> Allocation | None:
    """Cells for a request, one host's worth on every host; None where there are too few.

    The hosts are those of the lowest cell that has enough; of several such cells, the one with the fewest to spare.
    """
    hosts = state.having(state.cluster.hosts, request.gpus_per_host)
    rank = {host: _rank(state, host, request.gpus_per_host) for host in hosts}
    pods = [
        [sorted((host for host in rack if host in rank), key=rank.__getitem__) for rack in pod]
        for pod in state.cluster.pods
    ]
    if request.num_hosts == 1:
        racks = [rack for pod in pods for rack in pod if rack]
        # The smallest cell that holds it, wherever that is; then the fullest rack.
        chosen = tuple(min(racks, key=lambda rack: (rank[rack[0]], len(rack)), default=[])[:1])
    else:
        chosen = _of_the_lowest_cell(pods, request.num_hosts)
    if len(chosen) < request.num_hosts:
        return None
    return {host: _take(state.free[host], request.gpus_per_host, state.cluster.gpus_per_host) for host in chosen}


@cache
def free_cells(free: tuple[int, ...], gpus_per_host: int) -> tuple[Buddy, ...]:
    """The largest cells of a host that are free, by size, then by place; a host's cells are at most its GPUs."""
    available = set(free)
    cells: list[Buddy] = []
    size = 1 << (gpus_per_host.bit_length() - 1)
    while size:
        for first in range(0, gpus_per_host - size + 1, size):
            gpus = range(first, first + size)
            if available.issuperset(gpus):
                cells.append(Buddy(size, first))
                available.difference_update(gpus)
        size //= 2
    return tuple(sorted(cells))


def _take(free: Sequence[int], count: int, gpus_per_host: int) -> tuple[int, ...]:
    """A cell for every power of two in a number of GPUs, the largest first, each of the smallest that holds it."""
    taken: list[int] = []
    while len(taken) < count:
        cells = free_cells(tuple(gpu for gpu in free if gpu not in taken), gpus_per_host)
        wanted = 1 << ((count - len(taken)).bit_length() - 1)
        # Where the host has only smaller cells, the largest of them.
        cell = next((cell for cell in cells if cell.size >= wanted), cells[-1])
        taken += range(cell.first, cell.first + min(wanted, cell.size))
    return tuple(sorted(taken))


def _rank(state: ClusterState, host: str, count: int) -> tuple[int, int]:
    """How gladly a host gives so many GPUs: by the cell that it would split, then by what it has free."""
    free = state.free[host]
    wanted = 1 << (count.bit_length() - 1)
    sizes = (cell.size for cell in free_cells(free, state.cluster.gpus_per_host))
    # Where all cells are smaller, the request would lie in several: any whole cell comes first.
    return min((size for size in sizes if size >= wanted), default=state.cluster.gpus_per_host + 1), len(free)


def _of_the_lowest_cell(pods: Sequence[Sequence[Sequence[str]]], count: int) -> tuple[str, ...]:
    """Hosts of one rack; else of one pod; else of any. A cell is given by the hosts of its racks."""
    racks = [rack for pod in pods for rack in pod]
    for cells in ([[rack] for rack in racks], pods, [racks]):
        enough = [cell for cell in cells if _num_hosts(cell) >= count]
        if enough:
            return tuple(_whole_racks_first(min(enough, key=_num_hosts), count))
    return ()


def _num_hosts(cell: Iterable[Sequence[str]]) -> int:
    return sum(map(len, cell))


def _whole_racks_first(racks: Iterable[Sequence[str]], count: int) -> Iterator[str]:
    """Racks that are needed to the last host, the largest first; for the rest the rack with the fewest to spare."""
    left = list(racks)
    while count:
        enough = [rack for rack in left if len(rack) >= count]
        rack = min(enough, key=len) if enough else max(left, key=len)
        left.remove(rack)
        yield from rack[:count]
        count -= min(count, len(rack))
