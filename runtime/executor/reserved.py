"""What computations of a stretch reserve together, and what that amounts to in one run.

Computations of a stretch on one device reserve as one **group**, unless that were much of the device's memory: a
stretch is short, and to reserve takes longer than many a computation.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runtime.executor.memory import Reservation
from runtime.lowering.subprograms import HostPlan, Receipt
from runtime.messages import Failure
from runtime.program import Value
from runtime.store.buffers import Handle

_MOST = 1 / 16
"""The share of a device's memory that computations of a group may reserve together."""

Member = tuple[int, int]
"""Node and shard of a computation."""


class Taken(NamedTuple):
    """An input that lies on the device of a group already: which shard of which value."""

    value: Value
    source: int
    size_bytes: int


class Group:
    """Computations that reserve together on a device, as far as it is the same in every run.

    ``outputs`` are what they make, each with its shard and bytes. Of these, ``uses`` counts by (value, shard) who takes
    them in place later. ``taken`` are inputs in place, ``received_bytes`` is what all other inputs take, each shard of
    an edge once.
    """

    def __init__(self, plan: HostPlan, device: int, members: Sequence[Member]) -> None:
        self.device = device
        self.members = tuple(members)
        self.outputs: list[tuple[Value, int, int]] = []
        self.uses: dict[tuple[Value, int], int] = {}
        self.taken: list[Taken] = []
        inside = set(members)
        received: dict[tuple[int, int], int] = {}
        for node, shard in members:
            for output, made in enumerate(plan.calls[node].outputs):
                if not made.spec.is_bounded:
                    continue  # its memory is reserved once it is there (``landings``)
                value = Value(node, output)
                self.outputs.append((value, shard, made.sharding.shard_spec(made.spec).size_bytes))
                receipts = [plan.receipts[send.edge, send.piece.destination] for send in plan.local(value, shard)]
                takers = [(taker, each.shard) for each in receipts if each.is_in_place for taker, _ in each.edge.takers]
                self.uses[value, shard] = sum(taker not in inside for taker in takers)
            for edge in plan.inputs[node]:
                receipt = plan.receipts[edge, shard]
                if receipt.is_in_place:
                    self._take(receipt, inside)
                else:
                    received[edge, shard] = receipt.size_bytes
        self.received_bytes = sum(received.values())
        self.size_bytes = self.received_bytes + sum(size for _, _, size in self.outputs)

    def _take(self, receipt: Receipt, inside: set[Member]) -> None:
        value = receipt.edge.value
        source = receipt.edge.resharding.sources(receipt.shard)[0]
        if (value.node, source) not in inside:
            self.taken.append(Taken(value, source, receipt.size_bytes))


def groups_of(plan: HostPlan, nodes: Sequence[int], capacity_bytes: int) -> Iterator[Group]:
    """Yield the groups of a stretch on a host, with all of its local computations, each device's in order."""
    by_device: dict[int, list[Member]] = {}
    for node in nodes:
        for shard, device in plan.shards[node]:
            by_device.setdefault(device, []).append((node, shard))
    for device, members in by_device.items():
        together = Group(plan, device, members)
        taken_bytes = sum(each.size_bytes for each in set(together.taken))
        if (
            together.size_bytes <= _MOST * capacity_bytes
            and together.size_bytes + taken_bytes <= capacity_bytes  # one by one they may fit, if others are spilled
        ):
            yield together
        else:
            yield from (Group(plan, device, [member]) for member in members)


class Held:
    """What a group has reserved in one run: ``left`` of its computations have not ended."""

    __slots__ = ("client", "execution", "failure", "group", "is_there", "left", "reservation", "waiting")

    def __init__(self, client: int, execution: int, group: Group) -> None:
        self.client = client
        self.execution = execution
        self.group = group
        self.left = len(group.members)
        self.reservation: Reservation | None = None
        self.failure: Failure | None = None
        self.is_there = False
        self.waiting: list[Callable[[], None]] = []

    def come(self) -> None:
        """Note that there is room."""
        self.is_there = True
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()


class Handles:
    """Handles of what one execution holds, by (value, shard), and how many groups have still to take each."""

    __slots__ = ("by_value", "uses")

    def __init__(self) -> None:
        self.by_value: dict[tuple[Value, int], Handle] = {}
        self.uses: dict[Handle, int] = {}
