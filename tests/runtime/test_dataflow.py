"""Random programs on simulated hosts, where everything comes in any order, against NumPy on whole arrays."""

from collections import deque
from collections.abc import Mapping
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import lower
from runtime.messages import Failure
from runtime.program import Program
from tests.runtime.random_programs import computed, programs
from tests.runtime.simulated_hosts import (
    CLIENT,
    DEVICE_BYTES,
    ENOUGH_BYTES,
    HOSTS,
    SPEC,
    Host,
    held,
    run_all,
    same,
    start,
)

STRETCHES = st.integers(1, 5)


@given(programs(), programs(), st.data())
def test_programs_compute_what_numpy_computes_in_whatever_order_things_come(
    first: tuple[Program, Mapping[int, Placement]], second: tuple[Program, Mapping[int, Placement]], data: st.DataObject
) -> None:
    hosts: list[Host] = []
    device_bytes = data.draw(st.sampled_from([DEVICE_BYTES, ENOUGH_BYTES]))
    hosts += [Host(number, hosts, device_bytes) for number in range(HOSTS)]
    v, w = np.arange(16.0).reshape(SPEC.shape), np.arange(16.0, 32.0).reshape(SPEC.shape)
    predicate = np.array(data.draw(st.booleans()))
    one = lower(*first, [AT_CLIENT] * 3)
    given_by = one.layout(first[0].results[0])
    two = lower(*second, [given_by, AT_CLIENT, AT_CLIENT])
    start(hosts, 0, one, [-1] * 3, [v, w, predicate], first=0, stretch=data.draw(STRETCHES))
    start(hosts, 1, two, [0, -1, -1], [w, predicate], first=100, stretch=data.draw(STRETCHES))
    run_all(hosts, lambda number: data.draw(st.integers(0, number - 1)))
    expected = computed(first[0], [v, w, predicate])
    for place, result in enumerate(first[0].results):
        assert same(held(hosts, one.layout(result), place), expected[place])
    expected_of_second = computed(second[0], [expected[0], w, predicate])
    for place, result in enumerate(second[0].results):
        assert same(held(hosts, two.layout(result), 100 + place), expected_of_second[place])
    for host in hosts:
        assert (host.dataflow.running, host.dataflow.arrivals.waiting) == (0, 0)
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
    lowered = lower(*drawn, [AT_CLIENT] * 3)
    given_data = [np.ones(SPEC.shape), np.ones(SPEC.shape), np.array(data.draw(st.booleans()))]
    start(hosts, 0, lowered, [-1] * 3, given_data, first=0, stretch=data.draw(STRETCHES))
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
