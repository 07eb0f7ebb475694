"""A client of a runtime: slices, programs, arrays."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np

from runtime import messages, sources
from runtime.arrays import ArraySpec
from runtime.client.array import Array
from runtime.client.connection import ServerConnection
from runtime.client.slices import VirtualDeviceSet, VirtualSlice
from runtime.errors import RefusedError, RuntimeFailure
from runtime.frames import Frame
from runtime.functions import Function
from runtime.program import Program, Value
from runtime.resources.slices import Constraints
from runtime.structures import Structure, flatten, from_plain, to_plain, unflatten
from runtime.substrates.interface import DEFAULT_KIND, NewHost, Substrate
from runtime.traces import trace_events
from runtime.tracing import TracedProgram

_needed_in_ns: ContextVar[int] = ContextVar("needed_in_ns", default=-1)
_PATIENCE_S = 60.0
_MOST_UNNEEDED = 16
"""So many arrays are released by one message, or what there is several times a second."""


@contextmanager
def needed_in(seconds: float) -> Iterator[None]:
    """Say in how many seconds the results of programs are needed that are called meanwhile.

    Under the policy ``earliest-need`` what has the least slack goes first. Raises ValueError for a negative time.
    """
    if not 0 <= seconds < 1e9:
        raise ValueError(f"seconds: expected a time from 0 to 1e9, got {seconds}")
    token = _needed_in_ns.set(round(seconds * 1e9))
    try:
        yield
    finally:
        _needed_in_ns.reset(token)


class Runtime:
    """A connection to a runtime. It can be used from several threads, and as a context manager.

    Args:
        address: Where the server listens, ``unix:/PATH`` or ``HOST:PORT``.
        token: What the server knows this client by.

    Raises:
        RefusedError: The server does not know the token.
        OSError: Nobody listens there.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._unneeded: deque[int] = deque()
        self._connection = ServerConnection(address, token, self._release_unneeded)
        self._handles = count()
        self._numbers = count()
        self._functions: dict[Function, int] = {}
        self._programs: dict[TracedProgram, tuple[int, tuple[Value, ...]]] = {}
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection.error is None

    def make_virtual_device_set(self) -> VirtualDeviceSet:
        """Return a set of virtual devices, to which slices are added."""
        return VirtualDeviceSet(self, next(self._numbers))

    def add_slice(
        self,
        device_set: int,
        devices: int | None,
        shape: Sequence[int] | None,
        island: str | None,
        constraints: Constraints,
    ) -> VirtualSlice:
        """Return a new slice; see ``VirtualDeviceSet.add_slice``."""
        form = None if shape is None else tuple(shape)
        asked = (device_set, devices, form, island, constraints)
        answer = self._ask(lambda request: messages.AddSlice(request, *asked))
        assert isinstance(answer, messages.SliceAdded)
        return VirtualSlice(self, answer.number, answer.size, answer.island, form)

    def status(self) -> Mapping[str, Any]:
        """Return what the runtime holds and runs: hosts and clients."""
        return self._status(trace=False)

    def trace(self) -> list[dict[str, Any]]:
        """Return what the devices have run lately, as events for Perfetto and Chrome (``traces``)."""
        return trace_events(self._status(trace=True))

    def suspend(self, client: str) -> None:
        """Take the devices of a client away, until it is resumed; its requests wait meanwhile.

        Only operators may. Raises RefusedError, which names what is wrong.
        """
        self._ask(lambda request: messages.Manage(request, "suspend", client, None))

    def resume(self, client: str) -> None:
        """Give a suspended client devices again, perhaps others. Only operators may. Raises as ``suspend``."""
        self._ask(lambda request: messages.Manage(request, "resume", client, None))

    def migrate(self, client: str, island: str | None = None) -> None:
        """Move a client to an island, or to where static balance puts it. Only operators may. Raises as ``suspend``."""
        self._ask(lambda request: messages.Manage(request, "migrate", client, island))

    def add_host(
        self,
        island: str,
        devices: int = 2,
        *,
        device_memory_bytes: int = 1 << 30,
        host_memory_bytes: int = 4 << 30,
        kind: str = DEFAULT_KIND,
        substrate: Substrate | None = None,
    ) -> int:
        """Let a host with so many devices join an island, and return its number once it is there.

        The server starts its executor, or the ``substrate`` does, on this side. Slices that fitted nowhere get its
        devices; others stay where they are until their client is migrated. Only operators may. Raises as ``suspend``,
        and ValueError for what is no host.
        """
        asked = (NewHost(island, devices, device_memory_bytes, host_memory_bytes, kind), substrate is not None)
        answers = self._ask_on(lambda request: messages.AddHost(request, *asked), messages.HostAdmitted)
        answer = _answer(answers, None)
        if isinstance(answer, messages.HostAdmitted) and substrate is not None:
            substrate.spawn(replace(answer.settings, server=self.address))
            answer = _answer(answers, None)
        assert isinstance(answer, messages.HostAdded)
        return answer.host

    def remove_host(self, host: int, timeout_s: float | None = None) -> int:
        """Let a host leave, and return how many arrays have moved from it to others.

        Its slices get other devices at once, and nothing new begins there. What has begun runs to its end, however long
        that takes; then the host ends. Only operators may.

        Raises:
            RefusedError: A slice or an array has no room elsewhere; nothing has changed then.
            TimeoutError: It has not left yet; it still will.
        """
        answer = self._ask(lambda request: messages.RemoveHost(request, host), timeout_s)
        assert isinstance(answer, messages.HostRemoved)
        return answer.arrays

    def publish(self, name: str, arrays: Any) -> None:
        """Let other clients read arrays by a name: an array, or tuples, lists and dicts of them.

        They are held until ``withdraw``, or until this connection ends. The full name is ``CLIENT/NAME``. Raises
        RefusedError for a name that is in use or that belongs to another client, and for arrays that have failed.
        """
        leaves, structure = flatten(arrays)
        for each in leaves:
            if not isinstance(each, Array) or each.client is not self:
                raise TypeError(f"{name}: expected arrays of this runtime, got {type(each).__name__}")
        handles, plain = tuple(each.handle for each in leaves), to_plain(structure)
        self._ask(lambda request: messages.Publish(request, name, handles, plain))

    def withdraw(self, name: str) -> None:
        """End that others can open what was published by a name; those who have keep it. Raises RefusedError."""
        self._ask(lambda request: messages.Withdraw(request, name))

    def open(self, name: str, timeout_s: float | None = None) -> Any:
        """Return what a client published as ``CLIENT/NAME``, once it has been computed, nested as it was.

        The arrays are read-only. They live as long as anybody holds them, also when who published them has ended.

        Raises:
            RefusedError: It is not published, or this client may not read it or hold so many arrays.
            TimeoutError: It has not been computed yet.
        """
        opened: Future[tuple[Structure, list[Array]]] = Future()

        def taken(message: object, _: Frame | None) -> bool:
            if not opened.set_running_or_notify_cancel():
                for each in message.arrays if isinstance(message, messages.Opened) else ():
                    self.release(each.handle)
            elif isinstance(message, messages.Opened):
                arrays = [Array(self, each.handle, each.spec, each.sharding) for each in message.arrays]
                opened.set_result((from_plain(message.structure), arrays))
            else:
                opened.set_exception(_error_of(message))
            return True

        self._connection.ask(lambda request: messages.OpenPublished(request, name), taken)
        try:
            return unflatten(*opened.result(timeout_s))
        except FutureTimeoutError:
            if opened.cancel():
                raise TimeoutError(f"{name}: has not been computed after {timeout_s} s") from None
            return unflatten(*opened.result())

    def _status(self, *, trace: bool) -> Mapping[str, Any]:
        answer = self._ask(lambda request: messages.AskStatus(request, trace))
        assert isinstance(answer, messages.Status)
        return answer.status

    def run(self, traced: TracedProgram, arguments: Sequence[Any]) -> list[Any]:
        """Start a program and return its results as futures, at once.

        Raises what has ended the connection, TypeError for functions that cannot travel, and ValueError for arguments
        of other shapes.
        """
        given = [self._argument(array, spec) for array, spec in zip(arguments, traced.program.arguments, strict=True)]
        with self._lock:
            if len(self._unneeded) >= _MOST_UNNEEDED:
                self._release_unneeded()
            number, made = self._registered(traced)
            handles = {value: next(self._handles) for value in made}
            taken = tuple(each.handle if isinstance(each, Array) else -1 for each in given)
            data = [memoryview(each).cast("B") for each in given if not isinstance(each, Array) and each.nbytes]
            execute = messages.Execute(number, taken, tuple(handles.values()), _needed_in_ns.get())
            self._connection.send(execute, *data)
        program = traced.program
        arrays = {value: self._array(program, value, handle) for value, handle in handles.items()}
        return [given[value.node] if value.node < len(given) else arrays[value] for value in program.results]

    def fetch(self, array: Array, data: bool, timeout_s: float | None) -> "np.ndarray[Any, Any] | None":
        """Wait for an array; see ``Array``."""
        arrival = _Arrival(array, data)
        request = self._connection.ask(lambda number: messages.Fetch(number, array.handle, data), arrival.take)
        try:
            return arrival.future.result(timeout_s)
        except FutureTimeoutError:
            self._connection.forget(request)
            raise TimeoutError(f"array {array.handle} is not there after {timeout_s} s") from None

    def release(self, handle: int) -> None:
        """Note that nobody needs an array any more. Garbage collection calls it, so it takes no lock."""
        self._unneeded.append(handle)

    def close(self) -> None:
        """End the connection. The runtime forgets what belongs to this client."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _array(self, program: Program, value: Value, handle: int) -> Array:
        output = program.call(value.node).outputs[value.output]
        return Array(self, handle, output.spec, output.sharding)

    def _argument(self, array: Any, spec: ArraySpec) -> Any:
        """Return an argument as an array of this runtime or of NumPy. Raises ValueError unless it is of ``spec``."""
        if isinstance(array, Array):
            if array.client is not self:
                raise ValueError("an argument is an array of another runtime; pass its data, as array.numpy()")
            return array
        made = np.asarray(array, order="C")
        if made.shape != spec.shape or made.dtype.name != spec.dtype:
            got = f"{made.dtype.name}[{','.join(map(str, made.shape))}]"
            raise ValueError(f"expected {spec} as an argument, got {got}")
        return made

    def _registered(self, traced: TracedProgram) -> tuple[int, tuple[Value, ...]]:
        """Return the number of a program, and the values that it makes as results, each once."""
        known = self._programs.get(traced)
        if known is None:
            functions = tuple(map(self._registered_function, traced.functions))
            first = len(traced.program.arguments)
            made = tuple(dict.fromkeys(each for each in traced.program.results if each.node >= first))
            known = (next(self._numbers), made)
            program = replace(traced.program, results=made)
            self._connection.send(messages.RegisterProgram(known[0], program, functions))
            self._programs[traced] = known
        return known

    def _registered_function(self, function: Function) -> int:
        number = self._functions.get(function)
        if number is None:
            description = None if function.call is None else sources.described(function.call)
            number = next(self._numbers)
            stated = (function.name, function.library, function.duration_s)
            self._connection.send(messages.RegisterFunction(number, *stated, description, function.is_collective))
            self._functions[function] = number
        return number

    def _release_unneeded(self) -> None:
        handles = []
        with suppress(IndexError):
            while True:
                handles.append(self._unneeded.popleft())
        if handles:
            with suppress(RuntimeFailure):
                self._connection.send(messages.Release(tuple(handles)))

    def _ask(self, make: Callable[[int], object], timeout_s: float | None = _PATIENCE_S) -> object:
        """Return the answer to a request. Raises RefusedError, what ended the connection, or TimeoutError."""
        return _answer(self._ask_on(make), timeout_s)

    def _ask_on(self, make: Callable[[int], object], before: type | None = None) -> "SimpleQueue[object]":
        """Return the answers to a request as they come: perhaps one of the class ``before``, and the last one."""
        answers: SimpleQueue[object] = SimpleQueue()

        def taken(message: object, _: Frame | None) -> bool:
            answers.put(_error_of(message) if isinstance(message, messages.Refused) else message)
            return before is None or not isinstance(message, before)

        self._connection.ask(make, taken)
        return answers


def _answer(answers: "SimpleQueue[object]", timeout_s: float | None) -> object:
    """Return the next answer. Raises it if it is an error, and TimeoutError."""
    try:
        answer = answers.get(timeout=timeout_s)
    except Empty:
        raise TimeoutError(f"there is no answer after {timeout_s} s") from None
    if isinstance(answer, RuntimeFailure):
        raise answer
    return answer


def _error_of(message: object) -> RuntimeFailure:
    if isinstance(message, messages.Refused):
        return RefusedError(message.message)
    return message if isinstance(message, RuntimeFailure) else RuntimeFailure(f"got {type(message).__name__}")


class _Arrival:
    """An array on its way to the client, shard by shard."""

    def __init__(self, array: Array, data: bool) -> None:
        self._array = array
        self._data = data
        spec, sharding = array.spec, array.sharding
        self._left = sharding.shards if data and sharding.axis is not None else 1
        self._whole = np.empty(spec.shape, spec.dtype) if data and not spec.is_ragged else None
        self._ragged: dict[int, np.ndarray[Any, Any]] = {}
        self.future: Future[np.ndarray[Any, Any] | None] = Future()

    def take(self, message: object, frame: Frame | None) -> bool:
        """Take a shard, or the news that there will be none; return whether nothing more is to come."""
        if isinstance(message, messages.Fetched) and frame is not None:
            if self._data:
                self._put(message.shard, frame.payload)
            self._left -= 1
            if self._left == 0:
                ragged = [self._ragged[shard] for shard in sorted(self._ragged)]
                self.future.set_result(np.concatenate(ragged) if ragged else self._whole)
            return self._left == 0
        self.future.set_exception(
            message.failure.error() if isinstance(message, messages.FetchFailed) else _error_of(message)
        )
        return True

    def _put(self, shard: int, payload: bytearray | memoryview) -> None:
        spec, sharding = self._array.spec, self._array.sharding
        shape, data = sharding.shard_spec(spec).shape, np.frombuffer(payload, spec.dtype)
        if self._whole is None:
            self._ragged[shard] = data.reshape(len(data) // max(1, math.prod(shape[1:])), *shape[1:])
            return
        data = data.reshape(shape)
        if sharding.axis is None:
            self._whole[...] = data
        else:
            indices = sharding.indices(spec, shard)
            where = (slice(None),) * sharding.axis + (slice(indices.start, indices.stop),)
            self._whole[where] = data
