"""Executions of subprograms on a host: what each has computed, received and reserved."""

from collections.abc import Callable, Mapping, Sequence

from runtime.executor.assembly import Assembly
from runtime.executor.computations import Array, Computation, Feed, LoadedCall, LoadedFunction
from runtime.executor.groups import ShardGroup
from runtime.executor.hops import Hops, ShardPlan
from runtime.executor.reserved import Group, Handles, Held, groups_of
from runtime.lowering.subprograms import HostPlan, Subprogram


class LoadedSubprogram:
    """A subprogram as this host runs it: its plan, and what was worked out of it. ``shards`` are by node and shard.

    ``flows`` are those on which it sends, by edge and host, where it sends over a network.
    """

    def __init__(
        self, subprogram: Subprogram, host: int, functions: Sequence[LoadedFunction], device_bytes: int
    ) -> None:
        self._device_bytes = device_bytes
        self._stretches: dict[tuple[int, int], tuple[tuple[int, ...], tuple[Group, ...]]] = {}
        self.flows: dict[tuple[int, int], int] = {}
        self.plan = HostPlan(subprogram, host)
        self.hops = Hops(self.plan)
        self.shards: dict[tuple[int, int], ShardPlan] = {}
        for node, call in self.plan.calls.items():
            loaded = LoadedCall(call, functions[call.function])
            for shard, device in self.plan.shards[node]:
                self.shards[node, shard] = self.hops.shard_plan(loaded, node, shard, device)

    def stretch(self, first: int, last: int) -> tuple[tuple[int, ...], tuple[Group, ...]]:
        """Return the local nodes of a stretch, and what reserves memory together."""
        found = self._stretches.get((first, last))
        if found is None:
            nodes = tuple(node for node in self.plan.shards if first <= node <= last)
            found = nodes, tuple(groups_of(self.plan, nodes, self._device_bytes))
            self._stretches[first, last] = found
        return found


class Stretch:
    """Calls that were granted together: how many of their local shards have not ended, and what the others took.

    ``device_s`` is for how long they computed, ``occupied_s`` for how long nobody else could compute on their devices.
    """

    __slots__ = ("device_s", "end_s", "first", "granted_s", "has_failed", "has_result", "left", "occupied_s")

    def __init__(self, first: int, granted_s: float) -> None:
        self.first = first
        self.granted_s = granted_s
        self.left = 0
        self.device_s = 0.0
        self.occupied_s = 0.0
        self.end_s = 0.0
        self.has_failed = False
        self.has_result = False


class Execution:
    """One run of a subprogram; ``left`` are local shards that have not ended, ``stretches`` those granted by node.

    ``handles`` name the memory of values that were granted; ``held`` are the reservations of computations that have not
    ended. ``makers`` says which arguments, by node, are results of executions that have not ended: execution, node and
    output.
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
        self.left = len(loaded.shards)
        self.stretches: dict[int, Stretch] = {}
        self.arguments: Mapping[int, int] = {}
        self.makers: dict[int, tuple[int, int, int]] = {}
        self.handles = Handles()
        self.held: dict[tuple[int, int], Held] = {}
        self.is_awaited = False

    def computation(self, node: int, shard: int) -> Computation:
        """Return the computation of a shard, a new one where there is none."""
        found = self.computations.get((node, shard))
        if found is None:
            plan = self.loaded.shards[node, shard]
            inputs: list[Array] = [None] * plan.inputs  # type: ignore[list-item]
            found = Computation(
                self.client, self.number, node, shard, plan.device, plan.call, inputs, missing=plan.inputs + 1
            )
            found.feeds = self._feeds(plan)
            found.is_told = plan.leaves or node in self.result_nodes
            if plan.call.is_collective:
                found.group = self._group(node, shard)
            self.computations[node, shard] = found
        return found

    def _feeds(self, plan: ShardPlan) -> Sequence[Feed]:
        """Return which inputs of a shard are made on its device, in this execution or in one before it."""
        if not self.makers:
            return plan.feeds
        feeds = list(plan.feeds)
        for position, argument, shard in plan.arguments:
            if argument in self.makers:
                execution, node, output = self.makers[argument]
                feeds.append(Feed(position, node, shard, output, execution))
        return feeds
