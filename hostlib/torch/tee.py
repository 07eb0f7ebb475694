"""Sees every collective of PyTorch: whoever issues it, it passes a dispatcher operation of ``c10d`` on its way.

A kernel at the dispatch key BackendSelect notes each one and sends it on, unchanged. That covers DDP's reducer, FSDP,
tensor and pipeline parallelism, functional collectives and compiled code. Not seen are symmetric memory, programs that
call NCCL themselves, and replays of CUDA graphs, which are seen once, when they are captured.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.distributed import ProcessGroup

Seen = tuple[int, int | None, tuple[int, ...]]
"""What a collective moves: bytes, peer and bytes by rank, as ``algorithms.Collective`` defines them."""


class Observer(Protocol):
    """Hears of collectives, in the threads that issue them."""

    def issued(self, operation: str, group: str, seen: Seen) -> int | None:
        """A collective begins; return its number where ``returned`` is to be called."""

    def returned(self, number: int, result: Any) -> None:
        """Its operation has returned, while it goes on."""


def _bytes(tensors: Sequence[Any]) -> int:
    return sum([tensor.nbytes for tensor in tensors])


def _nested_bytes(lists: Sequence[Sequence[Any]]) -> int:
    return sum([tensor.nbytes for tensors in lists for tensor in tensors])


def _all_to_all_of_one(args: Sequence[Any]) -> Seen:
    sent, splits = args[1], args[4]
    if not splits:
        return sent.nbytes, None, ()
    row_bytes = sent.nbytes // sent.shape[0] if sent.shape[0] else 0
    return sent.nbytes, None, tuple([split * row_bytes for split in splits])


def _all_to_all(args: Sequence[Any]) -> Seen:
    splits = tuple([tensor.nbytes for tensor in args[1]])
    return sum(splits), None, splits


SIZES: Mapping[str, Callable[[Sequence[Any]], Seen]] = {
    "allreduce_": lambda args: (_bytes(args[0]), None, ()),
    "allreduce_coalesced_": lambda args: (_bytes(args[0]), None, ()),
    "broadcast_": lambda args: (_bytes(args[0]), args[2], ()),
    "reduce_": lambda args: (_bytes(args[0]), args[3], ()),
    "allgather_": lambda args: (_nested_bytes(args[0]), None, ()),
    "_allgather_base_": lambda args: (args[0].nbytes, None, ()),
    "allgather_into_tensor_coalesced_": lambda args: (_bytes(args[0]), None, ()),
    "reduce_scatter_": lambda args: (_nested_bytes(args[1]), None, ()),
    "_reduce_scatter_base_": lambda args: (args[1].nbytes, None, ()),
    "reduce_scatter_tensor_coalesced_": lambda args: (_bytes(args[1]), None, ()),
    "gather_": lambda args: (_bytes(args[1]), args[3], ()),
    "scatter_": lambda args: (_bytes(args[0]), args[3], ()),
    "alltoall_base_": _all_to_all_of_one,
    "alltoall_": _all_to_all,
    "send": lambda args: (_bytes(args[0]), args[2], ()),
    "recv_": lambda args: (_bytes(args[0]), args[2], ()),
    "recv_any_source_": lambda args: (_bytes(args[0]), None, ()),
    "barrier": lambda _args: (0, None, ()),
}
"""What each operation moves, by its arguments. Gathers and scatters: the large side, but of one root its small side."""


class Tee:
    """The kernels, which tell an observer of every collective until ``remove``.

    An error of the observer ends the observation of all, never a collective: ``failure`` has it.
    """

    def __init__(self, observer: Observer) -> None:
        self.failure: Exception | None = None
        self._observer: Observer | None = observer
        self._library: Any = torch.library.Library("c10d", "IMPL")
        self._below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        for name, seen in SIZES.items():
            overload = getattr(getattr(torch.ops.c10d, name, None), "default", None)
            if overload is not None:
                self._library.impl(name, self._kernel(name, overload, seen), "BackendSelect", with_keyset=True)

    def remove(self) -> None:
        """Take the kernels out again."""
        self._observer = None
        self._library._destroy()

    def _kernel(self, name: str, overload: Any, seen: Callable[[Sequence[Any]], Seen]) -> Callable[..., Any]:
        at = [argument.name for argument in overload._schema.arguments].index("process_group")
        below, unbox = self._below, ProcessGroup.unbox
        redispatch = getattr(overload._handle, "redispatch_boxed", overload.redispatch)  # saves a call

        def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            observer, number = self._observer, None
            if observer is not None:
                try:
                    number = observer.issued(name, unbox(args[at]).group_name, seen(args))
                except Exception as error:
                    self._fail(error)
            result = redispatch(keyset & below, *args, **kwargs)
            if number is not None and observer is not None:
                try:
                    observer.returned(number, result)
                except Exception as error:
                    self._fail(error)
            return result

        return kernel

    def _fail(self, error: Exception) -> None:
        self._observer, self.failure = None, error
