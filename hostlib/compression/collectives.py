"""The collectives that carry gradients, each an object that is issued by one thread and waited for there.

Sizes never travel: every rank knows from the agreed choice how large each part is, so that none waits for another to
say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import torch
import torch.distributed as dist

from hostlib.torch.algorithms import Collective, sent_bytes

_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
"""PyTorch has renamed it."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks that reduce together: their process group, this rank's number in it, how many there are."""

    group: Any
    rank: int
    size: int
    backend: str

    @classmethod
    def of(cls, group: Any) -> "Ranks":
        """Return those of a process group that this process is in."""
        return cls(group, dist.get_rank(group), dist.get_world_size(group), str(dist.get_backend(group)))

    def ranges(self, size: int) -> tuple[range, ...]:
        """Cut so many elements into one range for each rank, which owns it; the first ones may be one longer."""
        each, longer = divmod(size, self.size)
        starts = [rank * each + min(rank, longer) for rank in range(self.size + 1)]
        return tuple(range(begin, end) for begin, end in pairwise(starts))


class Operation(Protocol):
    """One collective that is ready to be issued."""

    def run(self, ranks: Ranks) -> Any:
        """Issue it, wait until it has completed, and return what came. Raises what PyTorch raises."""

    def sent_bytes(self, ranks: Ranks) -> int:
        """Payload that this rank sends in it."""


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Sums a tensor over all ranks, in place."""

    tensor: torch.Tensor

    def run(self, ranks: Ranks) -> torch.Tensor:
        """See ``Operation``."""
        dist.all_reduce(self.tensor, group=ranks.group)
        synchronize(self.tensor)
        return self.tensor

    def sent_bytes(self, ranks: Ranks) -> int:
        """See ``Operation``."""
        return _sent_bytes(Collective("allreduce_", self.tensor.nbytes), ranks)


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """Sums a tensor of as many equal parts as there are ranks, or takes its mean; each rank gets one part."""

    tensor: torch.Tensor
    output: torch.Tensor
    op: Any

    def run(self, ranks: Ranks) -> torch.Tensor:
        """See ``Operation``."""
        _reduce_scatter(self.output, self.tensor, op=self.op, group=ranks.group)
        synchronize(self.tensor)
        return self.output

    def sent_bytes(self, ranks: Ranks) -> int:
        """See ``Operation``."""
        return _sent_bytes(Collective("_reduce_scatter_base_", self.tensor.nbytes), ranks)


@dataclass(frozen=True, slots=True)
class SparseAllReduce(AllReduce):
    """Sums a sparse tensor over all ranks, in place: its indices and values are gathered."""

    def sent_bytes(self, ranks: Ranks) -> int:
        """See ``Operation``. After the sum it is what all ranks have together, which is at least what this one sent."""
        own_bytes = self.tensor._indices().nbytes + self.tensor._values().nbytes
        return _sent_bytes(Collective("allgather_", own_bytes * ranks.size), ranks)


@dataclass(frozen=True, slots=True)
class AllGather:
    """Gives every rank's payload to all; each is of the same size."""

    payload: torch.Tensor

    def run(self, ranks: Ranks) -> list[torch.Tensor]:
        """See ``Operation``."""
        gathered = [torch.empty_like(self.payload) for _ in range(ranks.size)]
        dist.all_gather(gathered, self.payload, group=ranks.group)
        synchronize(self.payload)
        return gathered

    def sent_bytes(self, ranks: Ranks) -> int:
        """See ``Operation``."""
        return _sent_bytes(Collective("allgather_", self.payload.nbytes * ranks.size), ranks)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Gives each rank one part: ``parts`` by the rank that gets it, ``sizes`` in elements by the rank that sends."""

    parts: Sequence[torch.Tensor]
    sizes: Sequence[int]

    def run(self, ranks: Ranks) -> list[torch.Tensor]:
        """See ``Operation``."""
        outgoing = torch.cat(list(self.parts))
        incoming = outgoing.new_empty(sum(self.sizes))
        splits = [part.numel() for part in self.parts]
        dist.all_to_all_single(incoming, outgoing, list(self.sizes), splits, group=ranks.group)
        synchronize(incoming)
        return list(incoming.split(list(self.sizes)))

    def sent_bytes(self, ranks: Ranks) -> int:
        """See ``Operation``."""
        splits = tuple(part.nbytes for part in self.parts)
        return _sent_bytes(Collective("alltoall_base_", sum(splits), splits_bytes=splits), ranks)


def _sent_bytes(collective: Collective, ranks: Ranks) -> int:
    return sum(sent_bytes(collective, ranks.rank, ranks.size, ranks.backend).values())


def synchronize(tensor: torch.Tensor) -> None:
    """Wait until the device has done what this thread has queued; NCCL only queues a collective."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()
