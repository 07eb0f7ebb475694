"""Inputs on their way to the computations of a host: pieces from other hosts and from this one, and failures.

Everything is addressed by tuples (execution, edge, destination shard, source shard). A shard comes once, for all
computations here that take it: each keeps it until it has ended. Pieces may come before the server's ``Run``, since all
hosts are told at once: they wait for it.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from runtime.executor.assembly import Assembly
from runtime.executor.computations import Array, Computation
from runtime.executor.executions import Execution
from runtime.executor.hops import Arrival
from runtime.executor.pieces import array_of, shape_of
from runtime.frames import FrameError
from runtime.lowering.subprograms import Receipt
from runtime.messages import Failure


class Arrivals:
    """What comes for the ``executions`` of a host.

    ``empty`` returns memory in which an input is put together, ``copy`` copies an array to another one and calls back,
    perhaps before it returns, and ``advance`` lets a device start what has become ready. ``end_s`` is when what arrives
    at the moment was made on this host, None otherwise.
    """

    def __init__(
        self,
        host: int,
        executions: Mapping[int, Execution],
        empty: Callable[[Sequence[int], str], Array],
        copy: Callable[[Array, Array, Callable[[], None]], None],
        advance: Callable[[int], None],
    ) -> None:
        self._host = host
        self._executions = executions
        self._empty = empty
        self._copy = copy
        self._advance = advance
        self._early: dict[int, list[Callable[[], None]]] = {}
        self._last = -1
        self.end_s: float | None = None

    @property
    def waiting(self) -> int:
        """Pieces that came before the server's word about their execution."""
        return sum(map(len, self._early.values()))

    @property
    def made_s(self) -> float:
        """When what arrives or is sent was made, as far as that is known, and now otherwise."""
        return time.perf_counter() if self.end_s is None else self.end_s

    def begin(self, number: int) -> None:
        """Let pieces of an execution arrive that came before it."""
        self._last = number
        for arrive in self._early.pop(number, ()):
            arrive()
        for stale in [each for each in self._early if each < number]:
            del self._early[stale]

    def forget(self, number: int) -> None:
        """Forget pieces of an execution that has not begun."""
        self._early.pop(number, None)

    def receive(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure, /
    ) -> None:
        """Take a piece from another host, or the word that it will not come.

        Raises FrameError for what cannot be that piece. Where that shows only later, the computations fail.
        """
        execution = self._executions.get(number)
        if execution is None:
            if number > self._last:
                self._wait(number, partial(self._receive_early, number, edge, destination, source, data))
            return
        arrival = self._expected(execution, edge, destination, source)
        self.arrive(execution, arrival, data if isinstance(data, Failure) else array_of(data, *arrival.form))

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str, /) -> None:
        """Fail the computations that wait for a piece, which was lost on its way, if there are any."""
        execution = self._executions.get(number)
        if execution is None:
            if number > self._last:
                self._wait(number, partial(self.lose, number, edge, destination, source, cause))
            return
        try:
            arrival = execution.loaded.hops.arrival(edge, destination, source)
        except KeyError:  # it was refused, as no piece of this execution
            return
        for node, position in arrival.receipt.edge.takers:
            computation = execution.computation(node, destination)
            message = f"{computation.function.name}: shard {source} of input {position}: {cause}"
            computation.failure = computation.failure or Failure("LostError", message)
        self.arrive(execution, arrival, Failure("LostError", cause))

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int, /) -> memoryview | None:
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

    def arrive(self, execution: Execution, arrival: Arrival, array: Array | Failure) -> None:
        """Give a piece, or why it will not come, to all that take it here."""
        receipt = arrival.receipt
        if isinstance(array, Failure):
            for node, _ in receipt.edge.takers:
                computation = execution.computation(node, receipt.shard)
                computation.failure = computation.failure or array
        if receipt.is_direct or (receipt.sources == 1 and isinstance(array, Failure)):
            self._give(execution, receipt, None if isinstance(array, Failure) else array)
        else:
            assembly = self._assembly(execution, receipt)
            assembly.add(arrival.piece, None if isinstance(array, Failure) else array)

    def come(self, computation: Computation) -> None:
        """Note that an input of a computation is there, or its memory.

        What was made on this host is there from the end of what made it, not from when the host hears of that: as on
        accelerators, which go on by themselves.
        """
        computation.ready_s = max(computation.ready_s, self.made_s)
        computation.missing -= 1
        if computation.missing <= len(computation.feeds) and computation.is_enqueued:
            self._advance(computation.device)

    def _wait(self, number: int, arrive: Callable[[], None]) -> None:
        """Let what came before the server's word about its execution wait for that."""
        self._early.setdefault(number, []).append(arrive)

    def _receive_early(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure
    ) -> None:
        """Take a piece that came early; where it is wrong, its computations fail."""
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

    def _give(self, execution: Execution, receipt: Receipt, array: Array | None) -> None:
        """Give a shard to the computations that take it; they have failed where it will not come."""
        takers = [(execution.computation(node, receipt.shard), position) for node, position in receipt.edge.takers]
        for computation, position in takers:
            if array is not None and computation.failure is None:
                computation.inputs[position] = array
        for computation, _ in takers:
            self.come(computation)

    def _assembly(self, execution: Execution, receipt: Receipt) -> Assembly:
        name = (receipt.edge.number, receipt.shard)
        found = execution.partial.get(name)
        if found is None:
            found = Assembly(receipt, self._empty, self._copy, partial(self._put_together, execution, receipt))
            execution.partial[name] = found
        return found

    def _put_together(self, execution: Execution, receipt: Receipt) -> None:
        """Take a shard of which all pieces have come, or are known not to."""
        assembly = execution.partial.pop((receipt.edge.number, receipt.shard))
        if self._executions.get(execution.number) is execution:  # else it was aborted while the last piece was copied
            self._give(execution, receipt, assembly.whole)
