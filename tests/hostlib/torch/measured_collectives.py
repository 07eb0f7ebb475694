"""Program of one rank: runs every collective in groups of 2, 3 and 4 ranks and counts the bytes of each connection."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist

from hostlib.torch.algorithms import Collective
from hostlib.torch.sockets import AdoptedSocket, Endpoints, connections

WORLD_SIZES = (2, 3, 4)
SIZES_BYTES = (1_200_000, 12_000_000)
REPETITIONS = 3

_FLOAT_BYTES = 4

_Case = tuple[Collective, Callable[[], object]]


def main(rank: int) -> list[dict[str, Any]]:
    """Return for each collective what this rank sent to each other one, averaged over the repetitions."""
    known: frozenset[Endpoints] = connections()
    results = []
    for world_size in WORLD_SIZES:
        group = dist.new_group(list(range(world_size)))
        if rank >= world_size:
            continue
        dist.all_reduce(torch.zeros(1), group=group)
        sockets = _sockets(connections() - known, rank, group)
        for size_bytes in SIZES_BYTES:
            for collective, run in _collectives(group, rank, size_bytes):
                before = _sent(sockets, group)
                for _ in range(REPETITIONS):
                    run()
                after = _sent(sockets, group)
                sent = {peer: (after[peer] - before[peer]) / REPETITIONS for peer in sockets}
                results.append({"world_size": world_size, "rank": rank, "sent": sent, "collective": asdict(collective)})
        known = connections()
    dist.barrier()
    return results


def _sockets(opened: frozenset[Endpoints], rank: int, group: dist.ProcessGroup) -> dict[int, AdoptedSocket]:
    """Return the connection to each other rank."""
    held: list[Any] = [None] * group.size()
    dist.all_gather_object(held, opened, group=group)
    adopted = AdoptedSocket.open_all(opened)
    return {
        peer: adopted[endpoints]
        for peer, others in enumerate(held)
        if peer != rank
        for endpoints in opened
        if endpoints.reversed in others
    }


def _sent(sockets: dict[int, AdoptedSocket], group: dist.ProcessGroup) -> dict[int, int]:
    dist.barrier(group)
    sent = {peer: adopted.sent_bytes() for peer, adopted in sockets.items()}
    dist.barrier(group)
    return sent


def _collectives(group: dist.ProcessGroup, rank: int, size_bytes: int) -> Iterator[_Case]:
    world_size = group.size()
    for root in (0, world_size - 1):
        yield from _rooted(group, rank, root, size_bytes)
    whole, part, parts = _tensors(size_bytes, world_size)
    half, half_part, _ = _tensors(size_bytes // 2, world_size)

    def case(operation: str, run: Callable[[], object], splits_bytes: tuple[int, ...] = ()) -> _Case:
        return Collective(operation, size_bytes, splits_bytes=splits_bytes), run

    yield case("allreduce_", lambda: dist.all_reduce(whole, group=group))
    yield case("allreduce_coalesced_", lambda: group.allreduce_coalesced([half, half.clone()]).wait())
    yield case("_allgather_base_", lambda: dist.all_gather_into_tensor(whole, part, group=group))
    yield case("allgather_", lambda: dist.all_gather(parts, part, group=group))
    yield case(
        "allgather_into_tensor_coalesced_",
        lambda: group.allgather_into_tensor_coalesced([half, half.clone()], [half_part, half_part]).wait(),
    )
    yield case("_reduce_scatter_base_", lambda: dist.reduce_scatter_tensor(part, whole, group=group))
    yield case("reduce_scatter_", lambda: dist.reduce_scatter(part, parts, group=group))
    yield case(
        "reduce_scatter_tensor_coalesced_",
        lambda: group.reduce_scatter_tensor_coalesced([half_part, half_part.clone()], [half, half]).wait(),
    )
    yield case("barrier", lambda: dist.barrier(group))
    yield case("alltoall_base_", lambda: dist.all_to_all_single(torch.empty_like(whole), whole, group=group))
    yield case("alltoall_", lambda: dist.all_to_all([torch.empty_like(part) for _ in parts], parts, group=group))
    # Of the shares 1, 2, 3 and so on, rank k gets from each rank the share k + 1.
    unit = whole.numel() // sum(range(world_size + 1))
    splits = [unit * (peer + 1) for peer in range(world_size)]
    received = [splits[rank]] * world_size
    yield case(
        "alltoall_base_",
        lambda: dist.all_to_all_single(torch.empty(sum(received)), whole[: sum(splits)], received, splits, group=group),
        tuple(_FLOAT_BYTES * split for split in splits),
    )


def _rooted(group: dist.ProcessGroup, rank: int, root: int, size_bytes: int) -> Iterator[_Case]:
    whole, part, parts = _tensors(size_bytes, group.size())
    held = parts if rank == root else None
    first = (root + 1) % group.size()

    def case(operation: str, run: Callable[[], object], peer: int | None = root) -> _Case:
        return Collective(operation, size_bytes, peer), run

    yield case("broadcast_", lambda: dist.broadcast(whole, group=group, group_src=root))
    yield case("reduce_", lambda: dist.reduce(whole, group=group, group_dst=root))
    yield case("gather_", lambda: dist.gather(part, held, group=group, group_dst=root))
    yield case("scatter_", lambda: dist.scatter(part, held, group=group, group_src=root))
    # The rank after the root sends it something, and it receives first from that rank, then from any.
    for operation, source in (("recv_", first), ("recv_any_source_", None)):
        if rank == first:
            yield case("send", lambda: dist.send(whole, group=group, group_dst=root))
        elif rank == root:
            yield case(operation, lambda source=source: dist.recv(whole, group=group, group_src=source), source)
        else:
            yield case("barrier", lambda: None)


def _tensors(size_bytes: int, world_size: int) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """A tensor, one of an n-th of its size, and n of those."""
    whole = torch.zeros(size_bytes // _FLOAT_BYTES)
    part = torch.zeros(whole.numel() // world_size)
    return whole, part, [torch.zeros_like(part) for _ in range(world_size)]
