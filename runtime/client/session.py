"""A client of a runtime: slices, programs, arrays."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from runtime import messages, sources
from runtime.arrays import ArraySpec
from runtime.client.array import Array
from runtime.client.arrivals import Arrival
from runtime.client.connection import ServerConnection
from runtime.client.habits import Asked, Habit
from runtime.client.operations import Operations
from runtime.client.requests import Requests, error_of
from runtime.client.slices import VirtualDeviceSet, VirtualSlice
from runtime.errors import RuntimeFailure
from runtime.frames import Frame
from runtime.functions import Function
from runtime.program import Output, Program, Value
from runtime.resources.slices import Constraints
from runtime.structures import Structure, flatten, from_plain, to_plain, unflatten
from runtime.traces import trace_events
from runtime.tracing import TracedProgram


class _Made(NamedTuple):
    """A result that a program makes."""

    value: Value
    output: Output
    habit: Habit


_needed_in_ns: ContextVar[int] = ContextVar("needed_in_ns", default=-1)
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


class Runtime(Operations):
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
        self._requests = Requests(self._connection)
        self._handles = count()
        self._numbers = count()
        self._functions: dict[Function, int] = {}
        self._programs: dict[TracedProgram, tuple[int, tuple[_Made, ...]]] = {}
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
        answer = self._requests.ask(lambda request: messages.AddSlice(request, *asked))
        assert isinstance(answer, messages.SliceAdded)
        return VirtualSlice(self, answer.number, answer.size, answer.island, form)

    def status(self) -> Mapping[str, Any]:
        """Return what the runtime holds and runs: hosts and clients."""
        return self._status(trace=False)

    def trace(self) -> list[dict[str, Any]]:
        """Return what the devices have run lately, as events for Perfetto and Chrome (``traces``)."""
        return trace_events(self._status(trace=True))

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
        self._requests.ask(lambda request: messages.Publish(request, name, handles, plain))

    def withdraw(self, name: str) -> None:
        """End that others can open what was published by a name; those who have keep it. Raises RefusedError."""
        self._requests.ask(lambda request: messages.Withdraw(request, name))

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
                opened.set_exception(error_of(message))
            return True

        self._connection.ask(lambda request: messages.OpenPublished(request, name), taken)
        try:
            return unflatten(*opened.result(timeout_s))
        except FutureTimeoutError:
            if opened.cancel():
                raise TimeoutError(f"{name}: has not been computed after {timeout_s} s") from None
            return unflatten(*opened.result())

    def _status(self, *, trace: bool) -> Mapping[str, Any]:
        answer = self._requests.ask(lambda request: messages.AskStatus(request, trace))
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
            handles = [next(self._handles) for _ in made]
            taken = tuple(each.handle if isinstance(each, Array) else -1 for each in given)
            data = [memoryview(each).cast("B") for each in given if not isinstance(each, Array) and each.nbytes]
            asked = [each.habit.foreseen(each.output.spec) for each in made]
            is_awaited = Asked.BEING_THERE in asked
            execute = messages.Execute(number, taken, tuple(handles), _needed_in_ns.get(), is_awaited)
            self._connection.post(execute, *data)
            arrays = {
                each.value: self._array(each, handle, what)
                for each, handle, what in zip(made, handles, asked, strict=True)
            }
            self._connection.flush()
        results = traced.program.results
        return [given[value.node] if value.node < len(given) else arrays[value] for value in results]

    def fetch(self, array: Array, data: bool, timeout_s: float | None) -> "np.ndarray[Any, Any] | None":
        """Wait for an array; see ``Array``."""
        arrival, request = array.arrival, None
        if arrival is None or (data and not arrival.has_data):
            arrival = Arrival(array.known_spec, array.sharding, data)
            request = self._connection.ask(partial(messages.Fetch, handle=array.handle, data=data), arrival.take)
        try:
            found = arrival.result(timeout_s)
            if arrival.rows >= 0:
                array.known_spec = array.sharding.bounded(array.known_spec, arrival.rows)
        except TimeoutError:
            if request is not None:
                self._connection.forget(request)
            raise TimeoutError(f"array {array.handle} is not there after {timeout_s} s") from None
        except RuntimeFailure:
            array.arrival = None
            raise
        finally:
            del arrival  # it has the error, whose traceback has this frame: the array would outlive its last reference
        array.arrival = None
        return found

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

    def _array(self, made: _Made, handle: int, asked: Asked) -> Array:
        """Return a new array, and ask for it beforehand."""
        spec, sharding, arrival = made.output.spec, made.output.sharding, None
        if asked is not Asked.NOTHING:
            arrival = Arrival(spec, sharding, asked is Asked.DATA)
            fetch = partial(messages.Fetch, handle=handle, data=arrival.has_data)
            self._connection.post_request(fetch, arrival.take)
        return Array(self, handle, spec, sharding, made.habit, arrival)

    def _argument(self, array: Any, spec: ArraySpec) -> Any:
        """Return an argument as an array of this runtime or of NumPy. Raises ValueError unless it is of ``spec``."""
        if isinstance(array, Array):
            if array.client is not self:
                raise ValueError("an argument is an array of another runtime; pass its data, as array.numpy()")
            return array
        made = np.asarray(array, order="C")
        if made.shape != spec.shape or made.dtype != np.dtype(spec.dtype):
            got = f"{made.dtype.name}[{','.join(map(str, made.shape))}]"
            raise ValueError(f"expected {spec} as an argument, got {got}")
        return made

    def _registered(self, traced: TracedProgram) -> tuple[int, tuple[_Made, ...]]:
        """Return the number of a program, and what it makes as results, each once."""
        known = self._programs.get(traced)
        if known is None:
            functions = tuple(map(self._registered_function, traced.functions))
            first = len(traced.program.arguments)
            made = tuple(dict.fromkeys(each for each in traced.program.results if each.node >= first))
            program = replace(traced.program, results=made)
            known = (next(self._numbers), tuple(_Made(each, _output(program, each), Habit()) for each in made))
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


def _output(program: Program, value: Value) -> Output:
    return program.call(value.node).outputs[value.output]
