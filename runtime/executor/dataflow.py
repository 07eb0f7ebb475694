"""The dataflow of a host: executions of subprograms, and arrays on their way between computations.

A computation becomes ready when all pieces of its inputs have come (``arrivals``); nothing passes between the nodes of
one shard but a reference.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from runtime.executor.arrivals import Arrivals
from runtime.executor.computations import Array, Computation, Done, LoadedFunction
from runtime.executor.executions import Execution, LoadedSubprogram, Stretch
from runtime.executor.groups import GroupKey, ShardGroup
from runtime.executor.hops import Delivery
from runtime.executor.landings import Landing, Landings
from runtime.executor.reservations import Reservations
from runtime.executor.reserved import Held
from runtime.executor.store import HostStore
from runtime.lowering.subprograms import Send, Subprogram
from runtime.messages import Failure, Run, Sized


class Completion(NamedTuple):
    """A stretch that has ended on this host, the last of its devices at ``end_s``.

    All devices together have computed for ``device_s``, and were occupied for ``occupied_s``: each since the stretch
    was granted, or since the device ended what came before.
    """

    execution: int
    first: int
    has_failed: bool
    device_s: float
    occupied_s: float
    end_s: float


class Outside(Protocol):
    """What the dataflow needs of its host."""

    def send_piece(self, host: int, execution: int, send: Send, data: Array, flow: int | None = None) -> None:
        """Send a piece to another host, on a flow if there is one; the array does not change any more."""

    def send_failure(self, host: int, execution: int, send: Send, failure: Failure) -> None:
        """Tell another host that a piece will never come."""

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """Return memory in which an input is put together."""

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        """Copy an array to another one, and call back; perhaps before this returns."""

    def prepare(self, execution: int, node: int) -> None:
        """Do what is to be done before the local shards of a granted node are enqueued, and let ``grant`` do that."""

    def wait(self, held: Held) -> None:
        """Take note that what was granted waits for memory."""

    def go_on(self, execution: int) -> None:
        """Take note that what was granted has memory at once."""

    def group(self, key: GroupKey, shard: int) -> ShardGroup:
        """Return the group for a shard of a collective call."""

    def enqueue(self, computation: Computation) -> None:
        """Put a granted computation into the queue of its device."""

    def advance(self, device: int) -> None:
        """Let a device start what has become ready."""

    def completed(self, ended: "Completion", is_awaited: bool) -> None:
        """Report that a stretch has ended here; ``is_awaited`` where a client may wait for what it made."""

    def has_more(self, device: int) -> bool:
        """Return whether a device has more to run."""

    def sized(self, told: Sized) -> None:
        """Report how many rows a shard has of which no bound was known."""


class Dataflow:
    """The executions of a host, and the ``arrivals`` of their inputs."""

    def __init__(self, host: int, store: HostStore, outside: Outside, device_bytes: int) -> None:
        self._host = host
        self._device_bytes = device_bytes
        self._store = store
        self._reservations = Reservations(store)
        self._landings = Landings(store, outside.sized)
        self._outside = outside
        self._functions: dict[int, LoadedFunction] = {}
        self._subprograms: dict[int, LoadedSubprogram] = {}
        self._executions: dict[int, Execution] = {}
        self._makers: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.arrivals = Arrivals(host, self._executions, outside.empty, outside.copy, outside.advance)
        self._free_s: dict[int, float] = {}

    @property
    def running(self) -> int:
        """Executions that have not ended here."""
        return len(self._executions)

    def add_function(self, number: int, function: LoadedFunction) -> None:
        """Make a function known."""
        self._functions[number] = function

    def add_subprogram(self, number: int, subprogram: Subprogram, functions: Sequence[int]) -> None:
        """Make a subprogram known; its functions must be."""
        self._subprograms[number] = LoadedSubprogram(
            subprogram, self._host, [self._functions[each] for each in functions], self._device_bytes
        )

    def add_flows(self, subprogram: int, flows: Mapping[tuple[int, int], int]) -> None:
        """Send what goes from a subprogram to other islands on these flows, which are by edge and host."""
        if subprogram in self._subprograms:
            self._subprograms[subprogram].flows |= flows

    def drop_flows(self, subprogram: int, numbers: Collection[int]) -> None:
        """Send nothing on these flows any more."""
        loaded = self._subprograms.get(subprogram)
        if loaded is not None:
            loaded.flows = {key: number for key, number in loaded.flows.items() if number not in numbers}

    @property
    def loaded(self) -> int:
        """Functions and subprograms that are known."""
        return len(self._functions) + len(self._subprograms)

    def unload(self, functions: Sequence[int], subprograms: Sequence[int]) -> None:
        """Forget functions and subprograms, as far as they are known; nothing that runs may need them."""
        for number in functions:
            self._functions.pop(number, None)
        for number in subprograms:
            self._subprograms.pop(number, None)

    def run(self, message: Run) -> None:
        """Start an execution: its results have buffers from now on, and what is granted is enqueued."""
        number = message.execution
        loaded = self._subprograms[message.subprogram]

        def group(node: int, shard: int) -> ShardGroup:
            return self._outside.group(GroupKey(message.client, message.groups, loaded.plan.places[node]), shard)

        execution = Execution(number, message.client, loaded, group)
        execution.arguments = message.arguments
        execution.is_awaited = message.is_awaited
        self._executions[number] = execution
        for argument, handle in message.arguments.items():
            if (maker := self._makers.get((message.client, handle))) is not None:
                execution.makers[argument] = maker
        for node, output, handle in message.results:
            self._makers[message.client, handle] = (number, node, output)
            execution.results[node, output] = handle
            execution.result_nodes.add(node)
            for shard, _ in loaded.plan.shards.get(node, ()):
                self._store.expect(message.client, handle, shard)
        for first, last in message.grants:
            self.grant(number, first, last)
        for value, shard in loaded.plan.sends:
            if value.node in message.arguments:
                handle = message.arguments[value.node]
                give = partial(self._give, execution, loaded.hops.deliveries(value, shard))
                self._store.when_there(message.client, handle, shard, give)
        self.arrivals.begin(number)
        self._end_if_done(execution)

    def grant(self, number: int, first: int, last: int) -> None:
        """Prepare the local shards of a stretch, and let ``enqueue`` enqueue them."""
        execution = self._executions.get(number)
        if execution is not None:
            nodes, groups = execution.loaded.stretch(first, last)
            stretch = Stretch(first, time.perf_counter())
            execution.stretches.update(dict.fromkeys(nodes, stretch))
            for group in groups:
                held = Held(execution.client, number, group)
                stretch.left += held.left
                execution.held.update(dict.fromkeys(group.members, held))
                self._reservations.reserve(held, execution.handles, execution.arguments, execution.results)
                if held.is_there:
                    self._outside.go_on(number)
                else:
                    self._outside.wait(held)
            for node in nodes:
                self._outside.prepare(number, node)

    def enqueue(self, number: int, node: int) -> None:
        """Enqueue the local shards of a node."""
        execution = self._executions.get(number)
        if execution is not None:
            for shard, _ in execution.loaded.plan.shards.get(node, ()):
                computation = execution.computation(node, shard)
                held = computation.held = execution.held[node, shard]
                computation.is_told |= held.group.members[-1] == (node, shard)
                if held.failure is not None:
                    message = f"{computation.function.name}: {held.failure.message}"
                    computation.failure = computation.failure or Failure(held.failure.kind, message)
                if held.is_there:
                    self.arrivals.come(computation)
                else:
                    held.waiting.append(partial(self.arrivals.come, computation))
                self._outside.enqueue(computation)

    def end_computation(self, computation: Computation, done: Done, end_s: float) -> None:
        """Take what a device has computed, until ``end_s``."""
        execution = self._executions.get(computation.execution)
        computation.inputs = []
        free_s = self._free_s.get(computation.device, -math.inf)
        self._free_s[computation.device] = max(free_s, end_s)
        if execution is None:
            self._give_back(computation)
            return
        if computation.failure is not None and done.outputs is not None:
            done = Done(None, computation.failure, done.duration_s)  # what it took was aborted while it ran
        node, shard = computation.node, computation.shard
        before_s, self.arrivals.end_s = self.arrivals.end_s, end_s
        for output, deliveries in enumerate(execution.loaded.shards[node, shard].outputs):
            array = done.failure if done.outputs is None else done.outputs[output]
            assert array is not None
            if node in execution.result_nodes and (handle := execution.results.get((node, output))) is not None:
                if output not in computation.function.unbounded or isinstance(array, Failure):
                    self._store.put(execution.client, handle, shard, array)
                execution.stretches[node].has_result = True
            self._give(execution, deliveries, array)
        self.arrivals.end_s = before_s
        held, computation.held = execution.held.pop((node, shard)), None
        if self._reservations.finish(held):
            self._reservations.release(held, execution.handles)
        if computation.function.unbounded and done.outputs is not None:
            self._land(execution, computation, done.outputs)
        execution.computations.pop((node, shard), None)
        execution.left -= 1
        stretch = execution.stretches[node]
        stretch.left -= 1
        stretch.device_s += done.duration_s
        stretch.occupied_s += max(0.0, end_s - max(stretch.granted_s, free_s))
        stretch.end_s = max(stretch.end_s, end_s)
        stretch.has_failed |= done.outputs is None
        if stretch.left == 0:
            is_last = execution.is_awaited or not self._outside.has_more(computation.device)
            took_s = (stretch.device_s, stretch.occupied_s)
            ended = Completion(execution.number, stretch.first, stretch.has_failed, *took_s, stretch.end_s)
            self._outside.completed(ended, is_awaited=stretch.has_result and is_last)
            self._end_if_done(execution)

    def abort(self, number: int, failure: Failure) -> list[Computation]:
        """Fail what an execution has not computed. Return collective calls that were granted, but not enqueued yet."""
        ahead = []
        self.arrivals.forget(number)
        execution = self._executions.pop(number, None)
        if execution is not None:
            collective = [each for each in execution.held if execution.loaded.shards[each].call.is_collective]
            ahead = [each for member in collective if not (each := execution.computation(*member)).is_enqueued]
            self._end_makers(execution)
            for member, held in execution.held.items():
                computation = execution.computations.get(member)
                if computation is None or not computation.is_running:
                    self._reservations.finish(held)
                if computation is not None and not computation.is_running:
                    computation.held = None
            self._store.memory.drop(execution.client, number)
            for (node, _), handle in execution.results.items():
                for shard, _ in execution.loaded.plan.shards.get(node, ()):
                    self._store.put(execution.client, handle, shard, failure)
        return ahead

    def forget(self, computation: Computation) -> None:
        """Give back the memory of a computation that its device has dropped; one that ran is not charged to others."""
        if computation.is_running:
            self._free_s[computation.device] = time.perf_counter()
        self._give_back(computation)

    def _give_back(self, computation: Computation) -> None:
        if computation.held is not None:
            self._reservations.finish(computation.held)
            computation.held = None

    def drop_client(self, client: int, failure: Failure) -> list[Computation]:
        """Abort all executions of a client; return what ``abort`` does of each."""
        numbers = [each.number for each in self._executions.values() if each.client == client]
        return [ahead for number in numbers for ahead in self.abort(number, failure)]

    def is_running(self, number: int) -> bool:
        """Return whether an execution has neither ended nor been aborted here."""
        return number in self._executions

    def is_waiting(self, number: int) -> bool:
        """Return whether something that was granted to an execution waits for memory."""
        execution = self._executions.get(number)
        return execution is not None and not all(held.is_there for held in execution.held.values())

    def is_stalled(self, number: int) -> bool:
        """Return whether all that was granted to an execution, and has not ended, waits for memory."""
        execution = self._executions.get(number)
        return execution is not None and not any(held.is_there for held in execution.held.values())

    def _give(self, execution: Execution, deliveries: Sequence[Delivery], array: Array | Failure) -> None:
        """Send a local shard of a value where it is needed."""
        for send, arrival in deliveries:
            if isinstance(array, Failure):
                if arrival is not None:
                    self.arrivals.arrive(execution, arrival, array)
                else:
                    self._outside.send_failure(send.host, execution.number, send, array)
                continue
            part = array if send.is_whole else array[send.piece.source_slices]
            if arrival is not None:
                self.arrivals.arrive(execution, arrival, part)
            else:
                flow = execution.loaded.flows.get((send.edge, send.host))
                self._outside.send_piece(send.host, execution.number, send, part, flow)

    def _land(self, execution: Execution, computation: Computation, outputs: Sequence[Array]) -> None:
        """Let outputs land of which no bound was known; what the computation had reserved is free by now."""
        node, shard, device = computation.node, computation.shard, computation.device
        for output in computation.function.unbounded:
            handle = execution.results.get((node, output))
            if handle is not None:
                name = computation.function.name
                self._landings.land(Landing(execution.client, handle, shard, device, name, outputs[output]))

    def _end_makers(self, execution: Execution) -> None:
        """Forget what an execution makes: those that take it find it in the store."""
        for handle in execution.results.values():
            self._makers.pop((execution.client, handle), None)

    def _end_if_done(self, execution: Execution) -> None:
        if not execution.left and self._executions.pop(execution.number, None) is not None:
            self._end_makers(execution)
            self._store.memory.drop(execution.client, execution.number)
