"""Where data go on a host, worked out once: what arrives for which inputs, and where what is made goes.

A hop from one computation to the next takes some ten microseconds, and this is looked up in each.
"""

from typing import NamedTuple

import numpy as np

from runtime.executor.computations import Feed, LoadedCall
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import HostPlan, Receipt, Send
from runtime.program import Value


class Arrival(NamedTuple):
    """A piece of a local shard of an edge; its ``form`` is shape, dtype, and whether it is ragged."""

    receipt: Receipt
    piece: Piece
    form: tuple[tuple[int, ...], np.dtype[np.generic], bool]


class Delivery(NamedTuple):
    """Where a piece of a local shard goes: what it is there, unless that is another host."""

    send: Send
    arrival: Arrival | None


class ShardPlan(NamedTuple):
    """What is the same in every run of one shard of a call.

    ``feeds`` are inputs that are made on the same device, and ``leaves`` says whether an output goes anywhere else.
    ``arguments`` are inputs that lie there as shards of an argument: position, node and shard of each. ``outputs`` says
    where each output goes.
    """

    call: LoadedCall
    device: int
    inputs: int
    feeds: tuple[Feed, ...]
    arguments: tuple[tuple[int, int, int], ...]
    leaves: bool
    outputs: tuple[tuple[Delivery, ...], ...]


class Hops:
    """The arrivals and deliveries of a host's part of a program."""

    def __init__(self, plan: HostPlan) -> None:
        self._plan = plan
        self._arrivals: dict[tuple[int, int, int], Arrival] = {}
        self._deliveries: dict[tuple[Value, int], tuple[Delivery, ...]] = {}

    def arrival(self, edge: int, destination: int, source: int) -> Arrival:
        """Return what a piece is here. Raises KeyError where none is expected."""
        found = self._arrivals.get((edge, destination, source))
        if found is None:
            receipt = self._plan.receipts[edge, destination]
            to = receipt.edge
            if source not in to.resharding.sources(destination):
                raise KeyError(source)
            piece = to.resharding.piece(source, destination)
            shape = tuple(each.stop - each.start for each in piece.destination_slices)
            form = (shape, np.dtype(to.spec.dtype), to.spec.is_ragged)
            found = Arrival(receipt, piece, form)
            self._arrivals[edge, destination, source] = found
        return found

    def deliveries(self, value: Value, shard: int) -> tuple[Delivery, ...]:
        """Return where a local shard of a value goes."""
        found = self._deliveries.get((value, shard))
        if found is None:
            sends = self._plan.sends.get((value, shard), ())
            found = tuple(Delivery(send, self._arrival_of(send)) for send in sends)
            self._deliveries[value, shard] = found
        return found

    def _arrival_of(self, send: Send) -> Arrival | None:
        is_local = send.host == self._plan.host
        return self.arrival(send.edge, send.piece.destination, send.piece.source) if is_local else None

    def shard_plan(self, call: LoadedCall, node: int, shard: int, device: int) -> ShardPlan:
        """Return what every run of a shard of a call needs."""
        plan = self._plan
        values = [Value(node, output) for output in range(len(plan.calls[node].outputs))]
        outputs = tuple(self.deliveries(value, shard) for value in values)
        leaves = any(to is None or not _is_passed_on(to.receipt) for sent in outputs for _, to in sent)
        feeds, arguments = [], []
        for position, edge in enumerate(plan.inputs[node]):
            receipt = plan.receipts[edge, shard]
            value = receipt.edge.value
            if _is_passed_on(receipt):
                source = receipt.edge.resharding.sources(shard)[0]
                if value.node in plan.calls:
                    feeds.append(Feed(position, value.node, source, value.output))
                else:
                    arguments.append((position, value.node, source))
        return ShardPlan(call, device, len(plan.inputs[node]), tuple(feeds), tuple(arguments), leaves, outputs)


def _is_passed_on(receipt: Receipt) -> bool:
    """Return whether an input is, as it is, what another computation on the same device makes."""
    edge = receipt.edge
    return receipt.is_in_place and edge.source.shard_spec(edge.spec).shape == receipt.shape
