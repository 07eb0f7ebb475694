"""Cell allocation of HiveD (Zhao et al., OSDI 2020): a buddy allocator over the levels of the cluster.

A cell is a group of GPUs that are close together: an aligned power of two of a host's GPUs, the host, its rack, its
pod, or the cluster. A cell is free when all its GPUs are free, so buddies merge without further work. A request takes a
free cell of the lowest level that holds it. Larger cells are split only when there is no other choice, which keeps them
whole for large jobs. HiveD's virtual clusters are not modelled: all jobs belong to one tenant.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest


@dataclass(frozen=True, slots=True, order=True)
class GpuCell:
    """An aligned group of GPUs of one host, ordered by size and then by position."""

    size: int
    first: int


def place_in_cells(state: ClusterState, request: GpuRequest) -> Allocation | None:
    """Allocate cells on every host of a request; return None where too few hosts have them.

    The hosts come from the lowest cell that has enough of them; of several such cells, from the one with the fewest
    spare.
    """
    hosts = state.hosts_with_free(state.cluster.hosts, request.gpus_per_host)
    rank = {host: _rank(state, host, request.gpus_per_host) for host in hosts}
    pods = [
        [sorted((host for host in rack if host in rank), key=rank.__getitem__) for rack in pod]
        for pod in state.cluster.pods
    ]
    if request.num_hosts == 1:
        racks = [rack for pod in pods for rack in pod if rack]
        # Prefer the smallest cell that holds it, then the fullest rack.
        chosen = tuple(min(racks, key=lambda rack: (rank[rack[0]], len(rack)), default=[])[:1])
    else:
        chosen = _of_the_lowest_cell(pods, request.num_hosts)
    if len(chosen) < request.num_hosts:
        return None
    return {host: _take(state.free[host], request.gpus_per_host, state.cluster.gpus_per_host) for host in chosen}


@cache
def free_cells(free: tuple[int, ...], gpus_per_host: int) -> tuple[GpuCell, ...]:
    """Return the largest free cells of a host, by size and then by position."""
    available = set(free)
    cells: list[GpuCell] = []
    size = 1 << (gpus_per_host.bit_length() - 1)
    while size:
        for first in range(0, gpus_per_host - size + 1, size):
            gpus = range(first, first + size)
            if available.issuperset(gpus):
                cells.append(GpuCell(size, first))
                available.difference_update(gpus)
        size //= 2
    return tuple(sorted(cells))


def _take(free: Sequence[int], count: int, gpus_per_host: int) -> tuple[int, ...]:
    """Choose a cell for each power of two in ``count``, largest first, from the smallest free cell that holds it."""
    taken: list[int] = []
    while len(taken) < count:
        cells = free_cells(tuple(gpu for gpu in free if gpu not in taken), gpus_per_host)
        wanted = 1 << ((count - len(taken)).bit_length() - 1)
        # If the host has only smaller cells, take the largest.
        cell = next((cell for cell in cells if cell.size >= wanted), cells[-1])
        taken += range(cell.first, cell.first + min(wanted, cell.size))
    return tuple(sorted(taken))


def _rank(state: ClusterState, host: str, count: int) -> tuple[int, int]:
    """Rank a host for a request: first by the size of the cell to be split, then by its number of free GPUs."""
    free = state.free[host]
    wanted = 1 << (count.bit_length() - 1)
    sizes = (cell.size for cell in free_cells(free, state.cluster.gpus_per_host))
    # If all cells are smaller, the request would span several cells: rank the host last.
    return min((size for size in sizes if size >= wanted), default=state.cluster.gpus_per_host + 1), len(free)


def _of_the_lowest_cell(pods: Sequence[Sequence[Sequence[str]]], count: int) -> tuple[str, ...]:
    """Choose hosts of one rack if possible, else of one pod, else of any. A cell is given as the hosts of its racks."""
    racks = [rack for pod in pods for rack in pod]
    for cells in ([[rack] for rack in racks], pods, [racks]):
        enough = [cell for cell in cells if _num_hosts(cell) >= count]
        if enough:
            return tuple(_whole_racks_first(min(enough, key=_num_hosts), count))
    return ()


def _num_hosts(cell: Iterable[Sequence[str]]) -> int:
    return sum(map(len, cell))


def _whole_racks_first(racks: Iterable[Sequence[str]], count: int) -> Iterator[str]:
    """Choose whole racks, the largest first, and the rest from the rack with the fewest spare hosts."""
    left = list(racks)
    while count:
        enough = [rack for rack in left if len(rack) >= count]
        rack = min(enough, key=len) if enough else max(left, key=len)
        left.remove(rack)
        yield from rack[:count]
        count -= min(count, len(rack))
