"""The dataflow of a host: executions of subprograms, and arrays on their way between computations.

Everything is addressed by tuples (execution, edge, destination shard, source shard). A computation becomes ready when
all pieces of its inputs have come; nothing passes between the nodes of one shard but a reference. Pieces may come
before the server's ``Run``, since all hosts are told at once: they wait for it.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from runtime.executor.assembly import Assembly
from runtime.executor.computations import Array, Computation, Done, LoadedFunction
from runtime.executor.executions import Execution, LoadedSubprogram, Stretch
from runtime.executor.groups import GroupKey, ShardGroup
from runtime.executor.hops import Arrival, Delivery
from runtime.executor.landings import Landing, Landings
from runtime.executor.pieces import array_of, shape_of
from runtime.executor.reservations import Reservations
from runtime.executor.reserved import Held
from runtime.executor.store import HostStore
from runtime.frames import FrameError
from runtime.lowering.subprograms import Receipt, Send, Subprogram
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
    """The executions of a host."""

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
        self._early: dict[int, list[Callable[[], None]]] = {}
        self._last = -1
        self._made_s: float | None = None
        self._free_s: dict[int, float] = {}

    @property
    def running(self) -> int:
        """Executions that have not ended here."""
        return len(self._executions)

    @property
    def waiting_pieces(self) -> int:
        """Pieces that came before the server's word about their execution."""
        return sum(map(len, self._early.values()))

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
    def made_s(self) -> float:
        """When what is being sent was made, as far as that is known, and now otherwise."""
        return time.perf_counter() if self._made_s is None else self._made_s

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
        self._last = number
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
        for arrive in self._early.pop(number, ()):
            arrive()
        for stale in [each for each in self._early if each < number]:
            del self._early[stale]
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
                    self._come(computation)
                else:
                    held.waiting.append(partial(self._come, computation))
                self._outside.enqueue(computation)

    def receive(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure
    ) -> None:
        """Take a piece from another host, or the word that it will not come.

        Raises FrameError for what cannot be that piece. Where that shows only later, the computation fails.
        """
        execution = self._executions.get(number)
        if execution is None:
            if number > self._last:
                self._wait(number, partial(self._receive_early, number, edge, destination, source, data))
            return
        arrival = self._expected(execution, edge, destination, source)
        self._arrive(execution, arrival, data if isinstance(data, Failure) else array_of(data, *arrival.form))

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str) -> None:
        """Fail the computation that waits for a piece, which was lost on its way, if there is one."""
        execution = self._executions.get(number)
        if execution is None:
            if number > self._last:
                self._wait(number, partial(self.lose, number, edge, destination, source, cause))
            return
        try:
            arrival = execution.loaded.hops.arrival(edge, destination, source)
        except KeyError:  # it was refused, as no piece of this execution
            return
        name = execution.loaded.shards[arrival.node, arrival.shard].call.name
        what = f"shard {source} of input {arrival.position}"
        self._arrive(execution, arrival, Failure("LostError", f"{name}: {what}: {cause}"))

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int) -> memoryview | None:
        """Return the memory where a piece is needed, if it is known, and a row of so many bytes.

        Raises FrameError for what cannot be that piece.
        """
        execution = self._executions.get(number)
        if execution is None:
            return None
        arrival = self._expected(execution, edge, destination, source)
        shape_of(size_bytes, *arrival.form)
        if arrival.receipt.is_direct:
            return None
        return self._assembly(execution, arrival.receipt).place(arrival.piece, size_bytes)

    def _wait(self, number: int, arrive: Callable[[], None]) -> None:
        """Let what came before the server's word about its execution wait for that."""
        self._early.setdefault(number, []).append(arrive)

    def _receive_early(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure
    ) -> None:
        """Take a piece that came early; where it is wrong, its computation fails."""
        try:
            self.receive(number, edge, destination, source, data)
        except FrameError as error:
            print(f"host {self._host}: refused a piece of execution {number}: {error}", file=sys.stderr, flush=True)
            self.lose(number, edge, destination, source, f"host {self._host} refused it: {error}")

    def _expected(self, execution: Execution, edge: int, destination: int, source: int) -> Arrival:
        try:
            return execution.loaded.hops.arrival(edge, destination, source)
        except KeyError:
            where = f"edge {edge} from shard {source} to shard {destination}"
            raise FrameError(f"execution {execution.number} expects no piece on {where}") from None

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
        before_s, self._made_s = self._made_s, end_s
        for output, deliveries in enumerate(execution.loaded.shards[node, shard].outputs):
            array = done.failure if done.outputs is None else done.outputs[output]
            assert array is not None
            if node in execution.result_nodes and (handle := execution.results.get((node, output))) is not None:
                if output not in computation.function.unbounded or isinstance(array, Failure):
                    self._store.put(execution.client, handle, shard, array)
                execution.stretches[node].has_result = True
            self._give(execution, deliveries, array)
        self._made_s = before_s
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
        self._early.pop(number, None)
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

    def _give(self, execution: Execution, deliveries: Sequence[Delivery], array: Array | Failure) -> None:
        """Send a local shard of a value where it is needed."""
        for send, arrival in deliveries:
            if isinstance(array, Failure):
                if arrival is not None:
                    self._arrive(execution, arrival, array)
                else:
                    self._outside.send_failure(send.host, execution.number, send, array)
                continue
            part = array if send.is_whole else array[send.piece.source_slices]
            if arrival is not None:
                self._arrive(execution, arrival, part)
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

    def _arrive(self, execution: Execution, arrival: Arrival, array: Array | Failure) -> None:
        receipt = arrival.receipt
        computation = execution.computation(arrival.node, arrival.shard)
        if isinstance(array, Failure):
            computation.failure = computation.failure or array
        if receipt.is_direct or (receipt.sources == 1 and isinstance(array, Failure)):
            if not isinstance(array, Failure):
                computation.inputs[arrival.position] = array
            self._come(computation)
        else:
            assembly = self._assembly(execution, receipt)
            assembly.add(arrival.piece, None if isinstance(array, Failure) else array)

    def _assembly(self, execution: Execution, receipt: Receipt) -> Assembly:
        name = (receipt.edge.number, receipt.shard)
        found = execution.partial.get(name)
        if found is None:
            on_whole = partial(self._put_together, execution, receipt)
            found = Assembly(receipt, self._outside.empty, self._outside.copy, on_whole)
            execution.partial[name] = found
        return found

    def _put_together(self, execution: Execution, receipt: Receipt) -> None:
        """Take an input of which all pieces have come, or are known not to."""
        assembly = execution.partial.pop((receipt.edge.number, receipt.shard))
        if self._executions.get(execution.number) is not execution:
            return  # it was aborted while the last piece was copied
        computation = execution.computation(receipt.edge.node, receipt.shard)
        if computation.failure is None:
            assert assembly.whole is not None
            computation.inputs[receipt.edge.position] = assembly.whole
        self._come(computation)

    def _come(self, computation: Computation) -> None:
        """Note that an input of a computation is there, or its memory.

        What was made on this host is there from the end of what made it, not from when the host hears of that: as on
        accelerators, which go on by themselves.
        """
        came_s = time.perf_counter() if self._made_s is None else self._made_s
        computation.ready_s = max(computation.ready_s, came_s)
        computation.missing -= 1
        if computation.missing <= len(computation.feeds) and computation.is_enqueued:
            self._outside.advance(computation.device)

    def _end_makers(self, execution: Execution) -> None:
        """Forget what an execution makes: those that take it find it in the store."""
        for handle in execution.results.values():
            self._makers.pop((execution.client, handle), None)

    def _end_if_done(self, execution: Execution) -> None:
        if not execution.left and self._executions.pop(execution.number, None) is not None:
            self._end_makers(execution)
            self._store.memory.drop(execution.client, execution.number)
