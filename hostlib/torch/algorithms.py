"""Algorithms of collectives: which rank sends how many bytes to which.

``gloo`` is modelled as PyTorch's back end runs it: a ring for all-reduce, all-gather and reduce, a binomial tree for
broadcast, an all-reduce of the whole input for every reduce-scatter, and direct transfers for the rest. ``nccl`` is
modelled as one ring over all ranks in the order of their numbers, for any size; NCCL's trees, its several channels and
the rings that it orders by topology are not modelled. All other back ends count as NCCL's ring.

Bytes are payload. What back ends add, such as gloo's 48 bytes before each message, is left out, and so a barrier sends
nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hostlib import checks
from hostlib.checks import MAX_32, MAX_SIZE_BYTES

_GLOO_SEGMENT_BYTES = 1 << 20
"""The largest segment of gloo's reduce."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective as one rank calls it. ``operation`` is the name of the c10d operator.

    ``size_bytes`` is, with world size n:

    - ``allreduce_``, ``allreduce_coalesced_``, ``broadcast_``, ``reduce_``: all tensors of the rank.
    - ``_allgather_base_``, ``allgather_``, ``allgather_into_tensor_coalesced_``: all that is gathered, n times the
      rank's inputs.
    - ``_reduce_scatter_base_``, ``reduce_scatter_``, ``reduce_scatter_tensor_coalesced_``: all inputs of the rank, n
      times its outputs.
    - ``gather_``: n times the rank's input. ``scatter_``: n times the rank's output. Both are so on every rank, though
      the root alone has the whole.
    - ``send``, ``recv_``, ``recv_any_source_``: the tensors that are sent or received.
    - ``alltoall_base_``, ``alltoall_``: the rank's inputs. Without ``splits_bytes`` every rank gets an equal share.
    - ``barrier``: not used.

    ``peer`` is the group rank of the destination of ``send``, of the source of ``recv_``, and of the root of
    ``broadcast_``, ``reduce_``, ``gather_`` and ``scatter_``. ``splits_bytes`` has the bytes that an all-to-all sends
    to each group rank, itself included.

    Jobs make very many of them, so they are checked only by ``sent_bytes``.
    """

    operation: str
    size_bytes: int
    peer: int | None = None
    splits_bytes: tuple[int, ...] = ()


def is_known(backend: str) -> bool:
    """Return whether the algorithms of a back end are modelled."""
    return backend in _PATTERNS


def sent_bytes(collective: Collective, rank: int, world_size: int, backend: str) -> dict[int, int]:
    """Return the bytes of payload that a rank sends to each group rank that it sends any to.

    Raises ValueError, naming the field, for an unknown operation, or if sizes or ranks do not fit together.
    """
    checks.integer("world_size", world_size, 1, MAX_32)
    checks.integer("rank", rank, 0, world_size - 1)
    checks.integer("size_bytes", collective.size_bytes, 0, MAX_SIZE_BYTES)
    pattern = _PATTERNS.get(backend, _NCCL).get(collective.operation)
    if pattern is None:
        raise ValueError(f"operation: expected a collective of c10d, got {checks.shown(collective.operation)}")
    sent = pattern(collective, rank, world_size)
    return {peer: size_bytes for peer, size_bytes in sent.items() if size_bytes and peer != rank}


_Pattern = Callable[[Collective, int, int], dict[int, int]]


def _ring(step: int, rounds: int) -> _Pattern:
    """Each rank passes on all but its own n-th part, once a round, to the rank that is ``step`` further."""

    def pattern(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
        return {(rank + step) % world_size: rounds * (world_size - 1) * collective.size_bytes // world_size}

    return pattern


def _nothing(_collective: Collective, _rank: int, _world_size: int) -> dict[int, int]:
    return {}


def _send(collective: Collective, _rank: int, world_size: int) -> dict[int, int]:
    return {_peer(collective, world_size): collective.size_bytes}


def _gather(collective: Collective, _rank: int, world_size: int) -> dict[int, int]:
    return {_peer(collective, world_size): collective.size_bytes // world_size}


def _scatter(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
    if rank != _peer(collective, world_size):
        return {}
    return dict.fromkeys(range(world_size), collective.size_bytes // world_size)


def _all_to_all(collective: Collective, _rank: int, world_size: int) -> dict[int, int]:
    splits_bytes = collective.splits_bytes or (collective.size_bytes // world_size,) * world_size
    if len(splits_bytes) != world_size:
        raise ValueError(f"splits_bytes: expected one for each of {world_size} ranks, got {len(splits_bytes)}")
    return {
        peer: checks.integer(f"splits_bytes[{peer}]", size_bytes, 0, MAX_SIZE_BYTES)
        for peer, size_bytes in enumerate(splits_bytes)
    }


def _chain_from_root(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
    following = (rank + 1) % world_size
    return {} if following == _peer(collective, world_size) else {following: collective.size_bytes}


def _chain_to_root(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
    return {} if rank == _peer(collective, world_size) else {(rank + 1) % world_size: collective.size_bytes}


def _binomial_tree(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
    root = _peer(collective, world_size)
    distance = (rank - root) % world_size
    # In round k those that are less than 2^k from the root have the tensor; each gives it to the one 2^k further.
    reaches = [1 << k for k in range(distance.bit_length(), (world_size - 1).bit_length())]
    return {(rank + reach) % world_size: collective.size_bytes for reach in reaches if distance + reach < world_size}


def _gloo_reduce(collective: Collective, rank: int, world_size: int) -> dict[int, int]:
    """A ring reduce-scatter toward lower ranks, then each rank sends its part to the root.

    The ring goes over all segments but two, which is more than it needs where parts have more than two segments.
    """
    root, size_bytes = _peer(collective, world_size), collective.size_bytes
    segment_bytes = max(1, min(-(-size_bytes // (2 * world_size)), _GLOO_SEGMENT_BYTES))
    segments_of_part = max(2, -(-size_bytes // (segment_bytes * world_size)))
    part_bytes = segments_of_part * segment_bytes
    end = (rank + 1) * part_bytes

    def between(start: int) -> int:
        return max(0, min(end, size_bytes) - start)

    sent = {(rank - 1) % world_size: size_bytes - between(end - 2 * segment_bytes)}
    if rank != root:
        sent[root] = sent.get(root, 0) + between(end - part_bytes)
    return sent


def _peer(collective: Collective, world_size: int) -> int:
    return checks.integer("peer", collective.peer, 0, world_size - 1)


_DIRECT: dict[str, _Pattern] = {
    "send": _send,
    "recv_": _nothing,
    "recv_any_source_": _nothing,
    "alltoall_base_": _all_to_all,
    "alltoall_": _all_to_all,
    "gather_": _gather,
    "scatter_": _scatter,
    "barrier": _nothing,
}
_ALL_REDUCES = ("allreduce_", "allreduce_coalesced_")
_ALL_GATHERS = ("_allgather_base_", "allgather_", "allgather_into_tensor_coalesced_")
_REDUCE_SCATTERS = ("_reduce_scatter_base_", "reduce_scatter_", "reduce_scatter_tensor_coalesced_")

_NCCL = (
    _DIRECT
    | dict.fromkeys(_ALL_REDUCES, _ring(step=1, rounds=2))
    | dict.fromkeys(_ALL_GATHERS + _REDUCE_SCATTERS, _ring(step=1, rounds=1))
    | {"broadcast_": _chain_from_root, "reduce_": _chain_to_root}
)
_GLOO = (
    _DIRECT
    | dict.fromkeys(_ALL_REDUCES + _REDUCE_SCATTERS, _ring(step=-1, rounds=2))
    | dict.fromkeys(_ALL_GATHERS, _ring(step=1, rounds=1))
    | {"broadcast_": _binomial_tree, "reduce_": _gloo_reduce}
)
_PATTERNS = {"gloo": _GLOO, "nccl": _NCCL}
