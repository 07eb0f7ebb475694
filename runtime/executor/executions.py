"""Executions of subprograms on a host: what each has computed, received and reserved."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from runtime.executor.assembly import Assembly
from runtime.executor.computations import Array, Computation, Feed, LoadedCall, LoadedFunction
from runtime.executor.groups import ShardGroup
from runtime.executor.reserved import Group, Handles, Held, groups_of
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import HostPlan, Receipt, Subprogram
from runtime.program import Value


class LoadedSubprogram:
    """A subprogram as this host runs it: its plan, the calls with their functions, and what was worked out of these.

    ``devices`` are those of its computations.
    """

    def __init__(
        self, subprogram: Subprogram, host: int, functions: Sequence[LoadedFunction], device_bytes: int
    ) -> None:
        self._device_bytes = device_bytes
        self._stretches: dict[tuple[int, int], tuple[tuple[int, ...], tuple[Group, ...]]] = {}
        self.plan = HostPlan(subprogram, host)
        self.calls = {node: LoadedCall(call, functions[call.function]) for node, call in self.plan.calls.items()}
        self.devices = {(node, shard): device for node, shards in self.plan.shards.items() for shard, device in shards}
        self.shards = len(self.devices)
        self.feeds = {each: tuple(self._feeds(*each)) for each in self.devices}
        self.leaving = {each for each in self.devices if self._leaves(*each)}
        self._pieces: dict[tuple[int, int, int], Piece] = {}

    def _feeds(self, node: int, shard: int) -> Iterator[Feed]:
        for position, edge in enumerate(self.plan.inputs[node]):
            receipt = self.plan.receipts[edge, shard]
            value = receipt.edge.value
            if receipt.is_in_place and value.node in self.plan.calls:
                yield Feed(position, value.node, receipt.edge.resharding.sources(shard)[0], value.output)

    def _leaves(self, node: int, shard: int) -> bool:
        for output in range(len(self.plan.calls[node].outputs)):
            for send in self.plan.sends.get((Value(node, output), shard), ()):
                receipt = self.plan.receipts.get((send.edge, send.piece.destination))
                if send.host != self.plan.host or receipt is None or not receipt.is_in_place:
                    return True
        return False

    def stretch(self, first: int, last: int) -> tuple[tuple[int, ...], tuple[Group, ...]]:
        """Return the local nodes of a stretch, and what reserves memory together."""
        found = self._stretches.get((first, last))
        if found is None:
            nodes = tuple(node for node in self.plan.shards if first <= node <= last)
            found = nodes, tuple(groups_of(self.plan, nodes, self._device_bytes))
            self._stretches[first, last] = found
        return found

    def called(self, edge: int, shard: int) -> tuple[LoadedCall, Receipt]:
        """Return which call waits for a shard of an edge, and what for."""
        receipt = self.plan.receipts[edge, shard]
        return self.calls[receipt.edge.node], receipt

    def piece(self, edge: int, destination: int, source: int) -> Piece:
        """Return the piece of a tuple. Raises KeyError where there is none."""
        found = self._pieces.get((edge, destination, source))
        if found is None:
            resharding = self.plan.receipts[edge, destination].edge.resharding
            if source not in resharding.sources(destination):
                raise KeyError(source)
            found = self._pieces[edge, destination, source] = resharding.piece(source, destination)
        return found


class Stretch:
    """Calls that were granted together: how many of their local shards have not ended, and what the others took."""

    __slots__ = ("device_s", "end_s", "first", "has_failed", "has_result", "left")

    def __init__(self, first: int) -> None:
        self.first = first
        self.left = 0
        self.device_s = 0.0
        self.end_s = 0.0
        self.has_failed = False
        self.has_result = False


class Execution:
    """One run of a subprogram; ``left`` are local shards that have not ended, ``stretches`` those granted by node.

    ``handles`` name the memory of values that were granted; ``held`` are the reservations of computations that have not
    ended.
    """

    def __init__(
        self, number: int, client: int, loaded: LoadedSubprogram, group: Callable[[int, int], ShardGroup]
    ) -> None:
        self.number = number
        self._group = group
        self.client = client
        self.loaded = loaded
        self.computations: dict[tuple[int, int], Computation] = {}
        self.partial: dict[tuple[int, int], Assembly] = {}
        self.results: dict[tuple[int, int], int] = {}
        self.result_nodes: set[int] = set()
        self.left = loaded.shards
        self.stretches: dict[int, Stretch] = {}
        self.arguments: Mapping[int, int] = {}
        self.handles = Handles()
        self.held: dict[tuple[int, int], Held] = {}

    def computation(self, node: int, shard: int) -> Computation:
        """Return the computation of a shard, a new one where there is none."""
        found = self.computations.get((node, shard))
        if found is None:
            device = self.loaded.devices[node, shard]
            missing = len(self.loaded.plan.inputs[node])
            call = self.loaded.calls[node]
            inputs: list[Array] = [None] * missing  # type: ignore[list-item]
            found = Computation(self.client, self.number, node, shard, device, call, inputs, missing + 1)
            found.feeds = self.loaded.feeds[node, shard]
            found.leaves = (node, shard) in self.loaded.leaving or node in self.result_nodes
            if call.is_collective:
                found.group = self._group(node, shard)
            self.computations[node, shard] = found
        return found
