"""Single executions on simulated hosts: who makes what, how long a device is occupied, and pieces that are wrong."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from runtime.arrays import Sharding
from runtime.executor.computations import Done
from runtime.executor.store import Found
from runtime.frames import FrameError
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import lower
from runtime.messages import Failure
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.simulated_hosts import CLIENT, ENOUGH_BYTES, SPEC, Host, held, run_all, same, start


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
        host.dataflow.arrivals.place(*name, size_bytes)
    with pytest.raises(FrameError, match=says):
        host.dataflow.arrivals.receive(*name, bytearray(size_bytes))
    host.dataflow.arrivals.receive(0, 1, 0, 0, bytearray(128))
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
            host.dataflow.arrivals.lose(0, 1, 0, 0, "it was cut")
        else:
            host.dataflow.arrivals.receive(0, 1, 0, 0, bytearray(5))
            host.dataflow.arrivals.receive(0, 9, 0, 0, bytearray(5))
        tell()
        run_all([host], lambda _: 0)
        found: list[Found] = []
        host.store.when_there(CLIENT, 0, 0, found.append)
        cause = "it was cut" if what == "lost" else "host 1 refused it: expected 128 bytes in a piece, got 5"
        assert found == [Failure("LostError", f"scale: shard 0 of input 0: {cause}")]
        assert ("expects no piece on edge 9" in capsys.readouterr().err) == (what == "wrong")
        assert (host.dataflow.running, host.dataflow.arrivals.waiting) == (0, 0)
