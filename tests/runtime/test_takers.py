"""What several calls of a host take comes once: who gets it, for how long it is kept, and what becomes of failures."""

from collections.abc import Sequence
from weakref import ref

import numpy as np
import pytest

from runtime.arrays import Sharding
from runtime.executor.store import Found
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import lower
from runtime.messages import Failure
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.simulated_hosts import ARGUMENTS, CLIENT, ENOUGH_BYTES, FUNCTIONS, SPEC, Host, run_all, start

WHOLE = Sharding(None, 1)
X = np.arange(16.0).reshape(SPEC.shape)


def sharing_hosts(maker: int = 0, guards: Sequence[bool | None] = (None, None), stretch: int = 1) -> list[Host]:
    """Two hosts: two calls on host 1 take what a call on host 0 makes, and one of them takes it twice.

    Their results have the handles 0 and 1. ``guards`` are those of both for one predicate, which is true; None for a
    call without.
    """
    made = Input(Value(2), WHOLE)
    calls = [Call(maker, FUNCTIONS[maker].__name__, 0, (Input(Value(0), WHOLE),), (Output(SPEC, WHOLE),))]
    for function, inputs, when in ((0, (made,), guards[0]), (1, (made, made), guards[1])):
        given = () if when is None else (Input(Value(1), WHOLE),)
        own = () if when is None else (when,)
        name = FUNCTIONS[function].__name__
        calls.append(Call(function, name, 1, (*given, *inputs), (Output(SPEC, WHOLE),), guards=own))
    program = Program("sharing", (SPEC, ARGUMENTS[-1]), tuple(calls), (Value(3), Value(4)))
    hosts: list[Host] = []
    hosts += [Host(number, hosts, ENOUGH_BYTES) for number in range(2)]
    slices = {number: Placement("island", (number,), (0,)) for number in range(2)}
    start(hosts, 0, lower(program, slices, [AT_CLIENT] * 2), [-1, -1], [X, np.array(True)], first=0, stretch=stretch)
    return hosts


def results_of(host: Host) -> list[Found]:
    found: list[Found] = []
    for handle in range(2):
        host.store.when_there(CLIENT, handle, 0, found.append)
    return found


def holds_nothing(host: Host) -> bool:
    host.store.release(CLIENT, range(2))
    kept = (host.store.handles, host.dataflow.running, host.dataflow.arrivals.waiting)
    return kept == (0, 0, 0) and set(host.store.memory.used_bytes.values()) == {0}


def tell_and_run(hosts: Sequence[Host]) -> None:
    for host in hosts:
        while host.wire[-1]:
            host.wire[-1].popleft()()
    while hosts[0].queues[0]:
        hosts[0].steps()[0]()


def test_what_two_calls_take_comes_once_and_is_there_until_both_have_taken_it() -> None:
    hosts = sharing_hosts()
    tell_and_run(hosts)
    (piece,) = hosts[0].wire[1]
    piece()
    first, second = hosts[1].queues[0]
    array = first.inputs[0]
    assert all(each is array for each in second.inputs)
    came = ref(array)
    del array
    hosts[1].steps()[0]()
    assert came() is not None
    assert hosts[1].store.memory.used_bytes[0] == 3 * SPEC.size_bytes  # both results, and what the second call takes
    hosts[1].steps()[0]()
    del first, second
    assert came() is None
    scaled, doubled = results_of(hosts[1])
    assert isinstance(scaled, np.ndarray)
    assert isinstance(doubled, np.ndarray)
    assert (scaled == 2 * (2 * X + 1) + 1).all()
    assert (doubled == 2 * (2 * X + 1)).all()
    assert all(map(holds_nothing, hosts))


@pytest.mark.parametrize(("stretch", "arrays"), [(1, 4), (3, 3)])
def test_calls_that_are_granted_together_reserve_what_both_take_once(stretch: int, arrays: int) -> None:
    hosts = sharing_hosts(stretch=stretch)
    tell_and_run(hosts)
    assert hosts[1].store.memory.used_bytes[0] == arrays * SPEC.size_bytes


def test_the_error_of_a_maker_reaches_all_that_take_what_it_makes() -> None:
    hosts = sharing_hosts(maker=2)
    tell_and_run(hosts)
    assert len(hosts[0].wire[1]) == 1
    run_all(hosts, lambda _: 0)
    for found in results_of(hosts[1]):
        assert isinstance(found, Failure)
        assert "no luck with (4, 4)" in found.message
    assert all(map(holds_nothing, hosts))


def test_a_piece_that_is_lost_fails_each_call_that_takes_it_by_its_name() -> None:
    hosts = sharing_hosts(guards=(True, None))
    tell_and_run(hosts)
    hosts[0].wire[1].clear()
    hosts[1].dataflow.arrivals.lose(0, 2, 0, 0, "it was cut")
    run_all(hosts, lambda _: 0)
    assert results_of(hosts[1]) == [
        Failure("LostError", "scale: shard 0 of input 1: it was cut"),
        Failure("LostError", "add: shard 0 of input 0: it was cut"),
    ]
    assert all(map(holds_nothing, hosts))


@pytest.mark.parametrize("guards", [(False, None), (None, False), (False, True), (True, False), (False, False)])
def test_a_call_that_does_not_compute_leaves_what_it_takes_to_the_others(guards: Sequence[bool | None]) -> None:
    hosts = sharing_hosts(guards=guards)
    run_all(hosts, lambda _: 0)
    made = 2 * X + 1
    for when, found, computed_ in zip(guards, results_of(hosts[1]), (2 * made + 1, 2 * made), strict=True):
        assert isinstance(found, np.ndarray)
        assert (found == (np.zeros(SPEC.shape) if when is False else computed_)).all()
    assert all(map(holds_nothing, hosts))
