"""Random programs on simulated hosts, where everything comes in any order, against NumPy on whole arrays."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.arrays import ArraySpec, Sharding
from runtime.executor.computations import Array, Computation, Done, LoadedFunction
from runtime.executor.dataflow import Completion, Dataflow
from runtime.executor.groups import GroupKey, ShardGroup
from runtime.executor.memory import HostMemory
from runtime.executor.store import Found, HostStore
from runtime.frames import FrameError
from runtime.lowering.assign import AT_CLIENT, Layout, Placement
from runtime.lowering.subprograms import LoweredProgram, Send, lower
from runtime.messages import Failure, RegisterFunction, Run, Sized
from runtime.program import Call, Input, Output, Program, Value
from runtime.server.arguments import ArgumentPieces
from runtime.sources import described
from runtime.store.buffers import HOST

HOSTS, DEVICES, CLIENT = 3, 2, 5
DEVICE_BYTES = 3 * 128
"""Room for one computation with two inputs and an output: everything else waits, or is spilled."""
ENOUGH_BYTES = 16 * 5 * DEVICE_BYTES
"""So much that all computations of a stretch reserve together."""
SPEC = ArraySpec((4, 4), "float64")
STRETCHES = st.integers(1, 5)


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
        receive = self.hosts[host].dataflow.receive
        call = partial(receive, execution, send.edge, send.piece.destination, send.piece.source, data)
        self.wire.setdefault(host, deque()).append(call)

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


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, Mapping[int, Placement]]:
    arguments = 2
    calls: list[Call] = []
    slices = {}
    values = [Value(node) for node in range(arguments)]
    for number in range(draw(st.integers(1, 5))):
        function = draw(st.sampled_from([0, 0, 1, 1, 1, 2]))
        shards = draw(st.sampled_from([1, 2, 4]))
        sharding = Sharding(draw(st.sampled_from([None, 0, 1])), shards)
        places = [(draw(st.integers(0, HOSTS - 1)), draw(st.integers(0, DEVICES - 1))) for _ in range(shards)]
        slices[number] = Placement("island", tuple(host for host, _ in places), tuple(place for _, place in places))
        taken = [draw(st.sampled_from(values)) for _ in range(2 if function == 1 else 1)]
        inputs = tuple(Input(value, sharding) for value in taken)
        calls.append(Call(function, FUNCTIONS[function].__name__, number, inputs, (Output(SPEC, sharding),)))
        values.append(Value(arguments + number))
    results = draw(st.lists(st.sampled_from(values[arguments:]), min_size=1, unique=True))
    return Program("random", (SPEC,) * arguments, tuple(calls), tuple(results)), slices


def computed(program: Program, arguments: Sequence[Array | None]) -> list[Array | None]:
    """What the results of a program are; None for those that depend on what fails."""
    values = list(arguments)
    for _, call in program.nodes():
        taken = [values[each.value.node] for each in call.inputs]
        is_lost = call.function == 2 or any(each is None for each in taken)
        values.append(None if is_lost else FUNCTIONS[call.function](*taken))
    return [values[result.node] for result in program.results]


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
            from_server.append(partial(told.dataflow.receive, number, edge, shard, 0, bytearray(part)))


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


@given(programs(), programs(), st.data())
def test_programs_compute_what_numpy_computes_in_whatever_order_things_come(
    first: tuple[Program, Mapping[int, Placement]], second: tuple[Program, Mapping[int, Placement]], data: st.DataObject
) -> None:
    hosts: list[Host] = []
    device_bytes = data.draw(st.sampled_from([DEVICE_BYTES, ENOUGH_BYTES]))
    hosts += [Host(number, hosts, device_bytes) for number in range(HOSTS)]
    v, w = np.arange(16.0).reshape(SPEC.shape), np.arange(16.0, 32.0).reshape(SPEC.shape)
    one = lower(*first, [AT_CLIENT, AT_CLIENT])
    given_by = one.layout(first[0].results[0])
    two = lower(*second, [given_by, AT_CLIENT])
    start(hosts, 0, one, [-1, -1], [v, w], first=0, stretch=data.draw(STRETCHES))
    start(hosts, 1, two, [0, -1], [w], first=100, stretch=data.draw(STRETCHES))
    run_all(hosts, lambda number: data.draw(st.integers(0, number - 1)))
    expected = computed(first[0], [v, w])
    for place, result in enumerate(first[0].results):
        assert same(held(hosts, one.layout(result), place), expected[place])
    expected_of_second = computed(second[0], [expected[0], w])
    for place, result in enumerate(second[0].results):
        assert same(held(hosts, two.layout(result), 100 + place), expected_of_second[place])
    for host in hosts:
        assert (host.dataflow.running, host.dataflow.waiting_pieces) == (0, 0)
        assert len(host.ended) == len(set(host.ended))
        assert host.awaited <= set(host.ended)
        host.store.release(CLIENT, range(200))
        assert host.store.handles == 0
        assert set(host.store.memory.used_bytes.values()) == {0}


@given(programs(), st.integers(0, 60), st.data())
def test_what_is_aborted_leaves_nothing_behind(
    drawn: tuple[Program, Mapping[int, Placement]], steps: int, data: st.DataObject
) -> None:
    hosts: list[Host] = []
    device_bytes = data.draw(st.sampled_from([DEVICE_BYTES, ENOUGH_BYTES]))
    hosts += [Host(number, hosts, device_bytes) for number in range(HOSTS)]
    lowered = lower(*drawn, [AT_CLIENT, AT_CLIENT])
    start(hosts, 0, lowered, [-1, -1], [np.ones(SPEC.shape)] * 2, first=0, stretch=data.draw(STRETCHES))
    for _ in range(steps):
        possible = [step for host in hosts for step in host.steps()]
        if possible:
            possible[data.draw(st.integers(0, len(possible) - 1))]()
    for host in hosts:
        # The server sends it after what it has sent before.
        abort = partial(host.dataflow.abort, 0, Failure("LostError", "no luck with a host"))
        host.wire.setdefault(-1, deque()).append(abort)
    run_all(hosts, lambda number: data.draw(st.integers(0, number - 1)))
    for result in range(len(drawn[0].results)):
        held(hosts, lowered.layout(drawn[0].results[result]), result)  # there, or failed: nobody waits
    for host in hosts:
        assert host.dataflow.running == 0
        host.store.release(CLIENT, range(10))
        assert host.store.handles == 0
        assert set(host.store.memory.used_bytes.values()) == {0}


def test_what_is_made_on_a_host_is_there_from_the_end_of_what_made_it() -> None:
    sharding = Sharding(None, 1)
    calls = tuple(Call(0, "scale", 0, (Input(Value(node), sharding),), (Output(SPEC, sharding),)) for node in range(2))
    program = Program("chain", (SPEC,), calls, (Value(2),))
    hosts: list[Host] = []
    hosts += [Host(0, hosts, ENOUGH_BYTES)]
    lowered = lower(program, {0: Placement("island", (0,), (0,))}, [AT_CLIENT])
    start(hosts, 0, lowered, [-1], [np.ones(SPEC.shape)], first=0, stretch=2)
    from_server = hosts[0].wire[-1]
    while from_server:
        from_server.popleft()()
    first, second = hosts[0].queues[0]
    end_s = first.ready_s + 1000.0
    hosts[0].queues[0].popleft()
    hosts[0].dataflow.end_computation(first, first.function.run(first.inputs), end_s)
    assert (second.missing, second.ready_s) == (0, end_s)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_what_takes_results_of_a_running_execution_knows_who_makes_them(is_aborted: bool) -> None:
    whole = Sharding(None, 1)
    call = Call(0, "scale", 0, (Input(Value(0), whole),), (Output(SPEC, whole),))
    program, slices = Program("step", (SPEC,), (call,), (Value(1),)), {0: Placement("island", (0,), (0,))}
    hosts: list[Host] = []
    hosts += [Host(0, hosts, ENOUGH_BYTES)]
    lowered = lower(program, slices, [AT_CLIENT])
    again = lower(program, slices, [lowered.layout(Value(1))])
    start(hosts, 0, lowered, [-1], [np.ones(SPEC.shape)], first=10, stretch=1)
    start(hosts, 1, again, [10], [], first=11, stretch=1)
    while hosts[0].wire[-1]:
        hosts[0].wire[-1].popleft()()
    first, second = hosts[0].queues[0]
    assert [tuple(each) for each in second.feeds] == [(0, 1, 0, 0, 0)]
    dataflow = hosts[0].dataflow
    passed_on = first.function.run(first.inputs).outputs
    assert passed_on is not None
    if is_aborted:  # the thread of the device has gone on with what was made, before it could hear of that
        dataflow.abort(0, Failure("LostError", "no luck with a host"))
    dataflow.end_computation(first, Done(passed_on, None, 0.0), 0)
    dataflow.end_computation(second, second.function.run(passed_on), 0)
    hosts[0].queues[0].clear()
    assert same(held(hosts, again.layout(Value(1)), 11), None if is_aborted else np.full(SPEC.shape, 7.0))
    start(hosts, 2, again, [11], [], first=12, stretch=1)
    while hosts[0].wire[-1]:
        hosts[0].wire[-1].popleft()()
    assert not hosts[0].queues[0][0].feeds  # it lies there


def test_a_device_is_occupied_since_it_ended_what_came_before() -> None:
    whole = Sharding(None, 1)
    calls = tuple(Call(0, "scale", 0, (Input(Value(0), whole),), (Output(SPEC, whole),)) for _ in range(3))
    program = Program("beside each other", (SPEC,), calls, (Value(3),))
    hosts: list[Host] = []
    hosts += [Host(0, hosts, ENOUGH_BYTES)]
    slices = {0: Placement("island", (0,), (0,))}
    start(hosts, 0, lower(program, slices, [AT_CLIENT]), [-1], [np.ones(SPEC.shape)], first=0, stretch=1)
    from_server, queue = hosts[0].wire[-1], hosts[0].queues[0]
    while from_server:
        from_server.popleft()()
    began_s = queue[0].ready_s + 1000.0
    for ends_s in (0.0, 0.25, 4.0):  # the last one computes for as long as the others: the device waited for it
        computation = queue.popleft()
        done = computation.function.run(computation.inputs)
        hosts[0].dataflow.end_computation(computation, done, began_s + ends_s)
    assert hosts[0].occupied_s[0] > 999
    assert hosts[0].occupied_s[1:] == pytest.approx([0.25, 3.75])


def test_what_follows_a_computation_that_was_stopped_is_not_charged_for_it() -> None:
    whole = Sharding(None, 1)
    call = Call(0, "scale", 0, (Input(Value(0), whole),), (Output(SPEC, whole),))
    program = Program("step", (SPEC,), (call,), (Value(1),))
    hosts: list[Host] = []
    hosts += [Host(0, hosts, ENOUGH_BYTES)]
    lowered = lower(program, {0: Placement("island", (0,), (0,))}, [AT_CLIENT])
    for number in range(2):
        start(hosts, number, lowered, [-1], [np.ones(SPEC.shape)], first=number, stretch=1)
    while hosts[0].wire[-1]:
        hosts[0].wire[-1].popleft()()
    stopped, following = hosts[0].queues[0]
    stopped.is_running = True
    hosts[0].dataflow.abort(0, Failure("LostError", "no luck with a host"))
    time.sleep(0.01)
    stopped_s = time.perf_counter()
    hosts[0].dataflow.forget(stopped)
    hosts[0].dataflow.end_computation(following, following.function.run(following.inputs), stopped_s + 1000.0)
    assert hosts[0].occupied_s[0] <= 1000.0


def waiting_host() -> tuple[Host, Callable[[], None]]:
    """Host 1, of which a call takes what host 0 makes, on edge 1; and what tells it of the execution."""
    whole = Sharding(None, 1)
    calls = tuple(Call(0, "scale", node, (Input(Value(node), whole),), (Output(SPEC, whole),)) for node in range(2))
    program = Program("chain", (SPEC,), calls, (Value(2),))
    hosts: list[Host] = []
    hosts += [Host(number, hosts, ENOUGH_BYTES) for number in range(2)]
    slices = {number: Placement("island", (number,), (0,)) for number in range(2)}
    start(hosts, 0, lower(program, slices, [AT_CLIENT]), [-1], [np.ones(SPEC.shape)], first=0, stretch=1)

    def tell() -> None:
        while hosts[1].wire[-1]:
            hosts[1].wire[-1].popleft()()

    return hosts[1], tell


@pytest.mark.parametrize(
    ("name", "size_bytes", "says"),
    [
        ((0, 1, 0, 0), 5, "expected 128 bytes in a piece, got 5"),
        ((0, 1, 0, 0), 256, "expected 128 bytes in a piece, got 256"),
        ((0, 9, 0, 0), 128, "execution 0 expects no piece on edge 9 from shard 0 to shard 0"),
        ((0, 1, 7, 0), 128, "execution 0 expects no piece on edge 1 from shard 0 to shard 7"),
        ((0, 1, 0, 7), 128, "execution 0 expects no piece on edge 1 from shard 7 to shard 0"),
    ],
)
def test_what_cannot_be_a_piece_is_refused_by_name(name: tuple[int, int, int, int], size_bytes: int, says: str) -> None:
    host, tell = waiting_host()
    tell()
    with pytest.raises(FrameError, match=says):
        host.dataflow.place(*name, size_bytes)
    with pytest.raises(FrameError, match=says):
        host.dataflow.receive(*name, bytearray(size_bytes))
    host.dataflow.receive(0, 1, 0, 0, bytearray(128))
    run_all([host], lambda _: 0)
    assert host.ended == [(0, 2)]


@pytest.mark.parametrize("is_early", [False, True])
def test_a_piece_that_is_lost_or_wrong_fails_what_waits_for_it(
    is_early: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in ("lost", "wrong") if is_early else ("lost",):
        host, tell = waiting_host()
        if not is_early:
            tell()
        if what == "lost":
            host.dataflow.lose(0, 1, 0, 0, "it was cut")
        else:
            host.dataflow.receive(0, 1, 0, 0, bytearray(5))
            host.dataflow.receive(0, 9, 0, 0, bytearray(5))
        tell()
        run_all([host], lambda _: 0)
        found: list[Found] = []
        host.store.when_there(CLIENT, 0, 0, found.append)
        cause = "it was cut" if what == "lost" else "host 1 refused it: expected 128 bytes in a piece, got 5"
        assert found == [Failure("LostError", f"scale: shard 0 of input 0: {cause}")]
        assert ("expects no piece on edge 9" in capsys.readouterr().err) == (what == "wrong")
        assert (host.dataflow.running, host.dataflow.waiting_pieces) == (0, 0)
