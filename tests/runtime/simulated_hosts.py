"""Hosts whose devices and connections do something when they are told to, and what lies on them in the end."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from runtime.arrays import ArraySpec
from runtime.executor.computations import Array, Computation, LoadedFunction
from runtime.executor.dataflow import Completion, Dataflow
from runtime.executor.groups import GroupKey, ShardGroup
from runtime.executor.memory import HostMemory
from runtime.executor.reserved import Held
from runtime.executor.store import Found, HostStore
from runtime.lowering.assign import Layout
from runtime.lowering.subprograms import LoweredProgram, Send
from runtime.messages import Failure, RegisterFunction, Run, Sized
from runtime.server.arguments import ArgumentPieces
from runtime.sources import described
from runtime.store.buffers import HOST

HOSTS, DEVICES, CLIENT = 3, 2, 5
DEVICE_BYTES = 3 * 128 + 1
"""Room for one computation with two inputs, a predicate and an output: everything else waits, or is spilled."""
ENOUGH_BYTES = 16 * 5 * DEVICE_BYTES
"""So much that all computations of a stretch reserve together."""
SPEC = ArraySpec((4, 4), "float64")
ARGUMENTS = (SPEC, SPEC, ArraySpec((), "bool"))


def scale(x: Array) -> Array:
    return 2 * x + 1


def add(x: Array, y: Array) -> Array:
    return x + y


def fail(x: Array) -> Array:
    raise ValueError(f"no luck with {x.shape}")


def repeat(x: Array) -> Array:
    return x.repeat(int(x[0, 0]) % 4, axis=0)


FUNCTIONS: Sequence[Callable[..., Any]] = (scale, add, fail, repeat)


@dataclass
class Host:
    """A host whose devices and connections do something when they are told to."""

    number: int
    hosts: "list[Host]"
    device_bytes: int
    wire: dict[int, deque[partial[None]]] = field(default_factory=dict)
    queues: list[deque[Computation]] = field(default_factory=lambda: [deque() for _ in range(DEVICES)])
    copied: deque[Callable[[], None]] = field(default_factory=deque)
    ended: list[tuple[int, int]] = field(default_factory=list)
    occupied_s: list[float] = field(default_factory=list)
    awaited: set[tuple[int, int]] = field(default_factory=set)
    told: list[Sized] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    went_on: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        budgets_bytes = dict.fromkeys(range(DEVICES), self.device_bytes)
        self.store = HostStore(HostMemory({HOST: 1 << 20, **budgets_bytes}))
        self.dataflow = Dataflow(self.number, self.store, self, self.device_bytes)
        for number, function in enumerate(FUNCTIONS):
            registered = RegisterFunction(number, function.__name__, "numpy", None, described(function))
            self.dataflow.add_function(number, LoadedFunction(registered))

    def send_piece(self, host: int, execution: int, send: Send, data: Array, _flow: int | None = None) -> None:
        self._send(host, execution, send, bytearray(data.tobytes()))

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        return np.empty(shape, dtype)

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        np.copyto(to, source)
        self.copied.append(on_done)

    def send_failure(self, host: int, execution: int, send: Send, failure: Failure) -> None:
        self._send(host, execution, send, failure)

    def _send(self, host: int, execution: int, send: Send, data: bytearray | Failure) -> None:
        receive = self.hosts[host].dataflow.arrivals.receive
        call = partial(receive, execution, send.edge, send.piece.destination, send.piece.source, data)
        self.wire.setdefault(host, deque()).append(call)

    def wait(self, held: Held) -> None:
        self.waits.append(held.execution)

    def go_on(self, execution: int) -> None:
        self.went_on.append(execution)

    def prepare(self, execution: int, node: int) -> None:
        self.dataflow.enqueue(execution, node)

    def group(self, key: GroupKey, shard: int) -> ShardGroup:
        raise AssertionError(f"{key} {shard}: no function here is collective")

    def enqueue(self, computation: Computation) -> None:
        self.queues[computation.device].append(computation)

    def advance(self, device: int) -> None:
        assert self.queues[device], "nothing is enqueued that could advance"

    def has_more(self, device: int) -> bool:
        return bool(self.queues[device])

    def completed(self, ended: Completion, is_awaited: bool) -> None:
        assert ended.device_s >= 0
        self.occupied_s.append(ended.occupied_s)
        self.ended.append((ended.execution, ended.first))
        self.awaited |= {ended[:2]} if is_awaited else set()

    def sized(self, told: Sized) -> None:
        self.told.append(told)

    def steps(self) -> list[Callable[[], None]]:
        """What can happen here next."""
        sends = [queue.popleft for queue in self.wire.values() if queue]
        runs = [partial(self._run, queue) for queue in self.queues if queue and queue[0].missing == 0]
        copies = [partial(_call, self.copied.popleft)] if self.copied else []
        return [*[partial(_call, each) for each in sends], *runs, *copies]

    def _run(self, queue: deque[Computation]) -> None:
        computation = queue.popleft()
        computation.is_running = True
        failure = computation.failure
        done = computation.function.run(computation.inputs)
        done = done._replace(outputs=None, failure=failure) if failure else done
        self.dataflow.end_computation(computation, done, 0)


def _call(take: Callable[[], Callable[[], None]]) -> None:
    take()()


def start(
    hosts: Sequence[Host],
    number: int,
    lowered: LoweredProgram,
    handles: Sequence[int],
    data: Sequence[Array],
    first: int,
    stretch: int,
) -> None:
    """Tell all hosts of an execution, each when its turn comes, as the server does; so many calls are one stretch."""
    nodes = [placed.node for placed in lowered.calls]
    stretches = [(nodes[at], nodes[at : at + stretch][-1]) for at in range(0, len(nodes), stretch)]
    payload = memoryview(b"".join(each.tobytes() for each in data))
    pieces = ArgumentPieces(lowered).cut(handles, payload)
    for host, index in lowered.subprogram_of_host.items():
        results = lowered.program.results
        run = Run(
            number,
            CLIENT,
            number,
            {node: handle for node, handle in enumerate(handles) if handle >= 0},
            tuple((each.node, each.output, first + place) for place, each in enumerate(results)),
            tuple(stretches),
        )
        told = hosts[host]
        load = partial(told.dataflow.add_subprogram, number, lowered.subprograms[index], range(len(FUNCTIONS)))
        from_server = told.wire.setdefault(-1, deque())
        from_server.append(load)
        from_server.append(partial(told.dataflow.run, run))
        for edge, shard, part in pieces.get(host, ()):
            from_server.append(partial(told.dataflow.arrivals.receive, number, edge, shard, 0, bytearray(part)))


def run_all(hosts: Sequence[Host], draw: Callable[[int], int]) -> None:
    while steps := [step for host in hosts for step in host.steps()]:
        steps[draw(len(steps))]()


def held(hosts: Sequence[Host], layout: Layout, handle: int) -> Array | None:
    """An array put together from the stores of its hosts; None if a shard of it has failed."""
    whole = np.full(SPEC.shape, np.nan)
    for shard, host in enumerate(layout.placement.hosts):
        found: list[Found] = []
        hosts[host].store.when_there(CLIENT, handle, shard, found.append)
        assert len(found) == 1, "a shard is still expected"
        if isinstance(found[0], Failure):
            assert "no luck with" in found[0].message
            return None
        if layout.sharding.axis is None:
            whole[...] = found[0]
        else:
            indices = layout.sharding.indices(SPEC, shard)
            np.moveaxis(whole, layout.sharding.axis, 0)[indices.start : indices.stop] = np.moveaxis(
                found[0], layout.sharding.axis, 0
            )
    return whole


def same(found: Array | None, expected: Array | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return bool((found == expected).all())
