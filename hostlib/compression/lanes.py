"""Two threads that carry gradients beside the backward pass: one encodes and decodes, one has a collective at a time.

What comes first is sent first, and one after the other, as all ranks do it; meanwhile the next one is encoded. A
callback of a future of PyTorch's would be called by gloo's threads, which can hang the interpreter's end where a peer
has died, so nothing here uses one. Both threads end with the interpreter.
"""

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from hostlib.compression.collectives import AllGather, Exchange, Operation, Ranks

Transmission = Generator[Operation | None, Any, torch.Tensor]
"""Yields collectives, is sent what came of each, and returns what the gradient has become.

It yields None once it needs the network no more and has still to compute.
"""

_now_s = time.perf_counter


@dataclass(slots=True)
class Carried:
    """What became of one transmission.

    Attributes:
        ready_s: When what it sends was computed, on this process's monotonic clock.
        encoded_s: When it could send.
        completed_s: When its last collective was complete.
        between_s: For how long it computed between its collectives.
        exchange_s: How long its exchange took, if it had one.
        sent_bytes: What this rank sent.
    """

    ready_s: float = 0.0
    encoded_s: float = 0.0
    completed_s: float = 0.0
    between_s: float = 0.0
    exchange_s: float = 0.0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Beside:
    """A small message of each rank, all of one size, that travels while the first collective of a transmission does.

    ``heard`` is called with the messages of all ranks before the transmission is complete.
    """

    message: bytes
    heard: Callable[[list[bytes]], None]


class Lanes:
    """Carries the transmissions of one process group, on which nobody else sends.

    Once one has failed, so do all later ones, with the same error: nobody knows what the other ranks have sent.
    """

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self._ranks = ranks
        self._device = device
        self._has_streams = device.type == "cuda"
        self._computing = _Lane("netsense-compute", device)
        self._sending = _Lane("netsense-send", device)
        self._error: Exception | None = None

    def carry(self, transmission: Transmission, carried: Carried, beside: Beside | None = None) -> Any:
        """Begin a transmission of what the device computes on the current stream; return the future of its end.

        Args:
            transmission: What is done; the threads advance it.
            carried: Filled in before the end.
            beside: Travels beside the first collective, or alone where there is none.
        """
        promise = torch.futures.Future(devices=[self._device] if self._has_streams else None)
        ended = promise.then(_value)  # a future has an error that DDP sees only where a callback has raised it
        queued = torch.cuda.current_stream(self._device).record_event() if self._has_streams else None

        def begin() -> "Operation | _Returned | None":
            if queued is not None:
                queued.synchronize()
                carried.ready_s = _now_s()
            step = _advanced(transmission, None)
            self._computing.synchronize()
            carried.encoded_s = carried.completed_s = _now_s()
            return step

        carried.ready_s = _now_s()
        first = self._computing.submit(begin)
        self._sending.submit(lambda: self._send(transmission, first, carried, beside, promise))
        return ended

    def _send(
        self,
        transmission: Transmission,
        first: "Future[Operation | _Returned | None]",
        carried: Carried,
        beside: Beside | None,
        promise: Any,
    ) -> None:
        try:
            if self._error is not None:
                raise self._error
            step = first.result()
            while step is not None and not isinstance(step, _Returned):
                step = _after(step, transmission, carried, self._ranks, self._device, beside)
                beside = None
            if beside is not None:
                carried.sent_bytes += _Message(beside, self._ranks, self._device).end(self._ranks)
            if isinstance(step, _Returned):
                promise.set_result(step.value)
            else:
                self._computing.submit(lambda: self._finish(transmission, promise))
        except Exception as error:
            self._error = error
            promise.set_result(error)

    def _finish(self, transmission: Transmission, promise: Any) -> None:
        try:
            returned = _advanced(transmission, None)
            if not isinstance(returned, _Returned):
                raise RuntimeError("a transmission that had left the network has yielded")
            promise.set_result(returned.value)
        except Exception as error:
            self._error = error
            promise.set_result(error)


def carry_here(
    transmission: Transmission, carried: Carried, ranks: Ranks, device: torch.device, beside: Beside | None = None
) -> torch.Tensor:
    """Do in this thread, which waits, what ``Lanes.carry`` does in others; return what the transmission returns."""
    with torch.no_grad():
        carried.ready_s = _now_s()
        step = _advanced(transmission, None)
        carried.encoded_s = carried.completed_s = _now_s()
        while not isinstance(step, _Returned):
            if step is None:
                step = _advanced(transmission, None)
            else:
                step = _after(step, transmission, carried, ranks, device, beside)
                beside = None
        if beside is not None:
            carried.sent_bytes += _Message(beside, ranks, device).end(ranks)
        return step.value


class _Lane:
    """A thread with a stream of its own, so that what it does on a device waits for nothing else there."""

    def __init__(self, name: str, device: torch.device) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def submit(self, task: Callable[[], Any]) -> "Future[Any]":
        return self._executor.submit(self._run, task)

    def _run(self, task: Callable[[], Any]) -> Any:
        with torch.no_grad(), self._on_stream():
            return task()

    def synchronize(self) -> None:
        """Wait until the device has done what was submitted."""
        if self._stream is not None:
            self._stream.synchronize()

    def _on_stream(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)


class _Message:
    """One message of each rank, on its way."""

    def __init__(self, beside: Beside, ranks: Ranks, device: torch.device) -> None:
        self._heard = beside.heard
        self._own = torch.frombuffer(bytearray(beside.message), dtype=torch.uint8).to(device)
        self._gathered = [torch.empty_like(self._own) for _ in range(ranks.size)]
        self._work = dist.all_gather(self._gathered, self._own, group=ranks.group, async_op=True)

    def end(self, ranks: Ranks) -> int:
        """Wait for it and hear all; return how many bytes this rank sent."""
        self._work.wait()
        self._heard([bytes(each.cpu().numpy()) for each in self._gathered])
        return AllGather(self._own).sent_bytes(ranks)


def _after(
    operation: Operation,
    transmission: Transmission,
    carried: Carried,
    ranks: Ranks,
    device: torch.device,
    beside: Beside | None,
) -> "Operation | _Returned | None":
    """Run a collective of a transmission, with a message beside it; return what the transmission does after it."""
    message = None if beside is None else _Message(beside, ranks, device)
    begin_s = _now_s()
    result = operation.run(ranks)
    carried.completed_s = _now_s()
    if isinstance(operation, Exchange):
        carried.exchange_s += carried.completed_s - begin_s
    carried.sent_bytes += operation.sent_bytes(ranks)
    if message is not None:
        carried.sent_bytes += message.end(ranks)
    step = _advanced(transmission, result)
    if step is not None and not isinstance(step, _Returned):
        carried.between_s += _now_s() - carried.completed_s
    return step


@dataclass(frozen=True, slots=True)
class _Returned:
    """What a transmission has returned."""

    value: torch.Tensor


def _advanced(transmission: Transmission, result: Any) -> Operation | _Returned | None:
    try:
        return transmission.send(result)
    except StopIteration as stop:
        return _Returned(stop.value)


def _value(promise: Any) -> torch.Tensor:
    value = promise.value()
    if isinstance(value, Exception):
        raise value
    return value
