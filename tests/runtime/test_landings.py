"""Outputs of which no bound was known: their memory is that of their rows, and is reserved when these are there."""

from collections import deque
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.arrays import ArraySpec, Sharding
from runtime.executor.landings import Landing, Landings
from runtime.executor.memory import HostMemory
from runtime.executor.store import Found, HostStore
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import LoweredProgram, lower
from runtime.messages import Failure
from runtime.program import Call, Input, Output, Program, Value
from runtime.store.buffers import HOST
from tests.runtime.random_programs import programs
from tests.runtime.simulated_hosts import CLIENT, DEVICE_BYTES, DEVICES, HOSTS, SPEC, Host, run_all, start

DEVICE, HANDLE, BUDGET_BYTES = 0, 7, 100
LOST = Failure("LostError", "gone")


class Landed:
    """A store with the memory of a device, and what was told of shards of one array that land in it."""

    def __init__(self, shards: int, host_bytes: int = 0) -> None:
        self.store = HostStore(HostMemory({HOST: host_bytes, DEVICE: BUDGET_BYTES}))
        self.told: list[tuple[int, int]] = []
        self._landings = Landings(self.store, lambda sized: self.told.append((sized.shard, sized.rows)))
        for shard in range(shards):
            self.store.expect(CLIENT, HANDLE, shard)

    def land(self, shard: int, rows: int) -> None:
        self._landings.land(Landing(CLIENT, HANDLE, shard, DEVICE, "f", np.zeros(rows, np.uint8)))

    def found(self, shard: int) -> Found | None:
        given_: list[Found] = []
        self.store.when_there(CLIENT, HANDLE, shard, given_.append)
        return given_[0] if given_ else None

    @property
    def used(self) -> tuple[int, int]:
        """Bytes on the device, and who waits for more."""
        return self.store.memory.used_bytes[DEVICE], self.store.memory.stalled


def test_shards_land_in_order_as_there_is_room_for_their_rows() -> None:
    landed = Landed(3)
    other = landed.store.memory.reserve(CLIENT, 1, DEVICE, [], [], [40], lambda: None)[0]
    for shard, rows in enumerate((60, 30, 10)):
        landed.land(shard, rows)
    assert (landed.told, landed.used) == ([(0, 60)], (100, 2))
    assert landed.found(1) is None
    landed.store.memory.finish(CLIENT, 1, other)
    assert (landed.told, landed.used) == ([(0, 60), (1, 30), (2, 10)], (100, 0))
    landed.store.release(CLIENT, [HANDLE])
    assert (landed.used, landed.store.handles) == ((0, 0), 0)


def test_shards_that_have_landed_are_spilled_for_others() -> None:
    landed = Landed(3, host_bytes=200)
    for shard in range(3):
        landed.land(shard, 60)
    assert (landed.told, landed.used) == ([(0, 60), (1, 60), (2, 60)], (60, 0))
    assert landed.store.memory.used_bytes[HOST] == 120


def test_what_its_device_could_never_hold_fails_by_name() -> None:
    landed = Landed(2)
    landed.land(0, 101)
    landed.land(1, 100)
    assert (landed.told, landed.used) == ([(0, -1), (1, 100)], (100, 0))
    failure = landed.found(0)
    assert isinstance(failure, Failure)
    assert "f: " in failure.message
    assert "101 bytes exceed the 100 of device 0" in failure.message


@pytest.mark.parametrize("how", ["released", "failed", "client dropped"])
def test_who_waits_for_room_in_vain_gives_it_up(how: str) -> None:
    landed = Landed(2)
    other = landed.store.memory.reserve(CLIENT + 1, 1, DEVICE, [], [], [50], lambda: None)[0]
    landed.land(0, 50)
    landed.land(1, 60)
    assert landed.used == (100, 1)
    match how:
        case "released":
            landed.store.release(CLIENT, [HANDLE])
        case "failed":
            landed.store.put(CLIENT, HANDLE, 1, LOST)
        case _:
            landed.store.drop_client(CLIENT, LOST)
    assert landed.used == (100 if how == "failed" else 50, 0)
    landed.store.memory.finish(CLIENT + 1, 1, other)
    landed.store.release(CLIENT, [HANDLE])
    assert (landed.told, landed.used, landed.store.handles) == ([(0, 50)], (0, 0), 0)


def test_whoever_asked_for_a_shard_gets_it_though_it_was_released_before_it_landed() -> None:
    landed = Landed(1)
    other = landed.store.memory.reserve(CLIENT, 1, DEVICE, [], [], [50], lambda: None)[0]
    landed.land(0, 60)
    found: list[Found] = []
    landed.store.when_there(CLIENT, HANDLE, 0, found.append)
    landed.store.release(CLIENT, [HANDLE])
    landed.store.memory.finish(CLIENT, 1, other)
    assert [len(each) for each in found if not isinstance(each, Failure)] == [60]
    assert (landed.used, landed.store.handles) == ((0, 0), 0)


def test_what_was_released_before_it_was_computed_takes_no_memory() -> None:
    landed = Landed(1)
    landed.store.release(CLIENT, [HANDLE])
    landed.land(0, 60)
    assert (landed.told, landed.used) == ([], (0, 0))


@st.composite
def repeats(draw: st.DrawFn) -> LoweredProgram:
    """A call of ``repeat`` anywhere."""
    shards = draw(st.sampled_from([1, 2, 4]))
    sharding = Sharding(draw(st.sampled_from([None, 0])), shards)
    places = [(draw(st.integers(0, HOSTS - 1)), draw(st.integers(0, DEVICES - 1))) for _ in range(shards)]
    slices = {0: Placement("island", tuple(host for host, _ in places), tuple(device for _, device in places))}
    output = Output(ArraySpec((None, 4), "float64"), sharding)
    call = Call(3, "repeat", 0, (Input(Value(0), sharding),), (output,))
    return lower(Program("repeat", (SPEC,), (call,), (Value(1),)), slices, [AT_CLIENT])


@given(programs(), st.lists(repeats(), min_size=1, max_size=4), st.integers(0, 80), st.data())
def test_rows_land_beside_programs_whatever_is_released_or_aborted_meanwhile(
    drawn: tuple[Program, dict[int, Placement]], unbounded: list[LoweredProgram], steps: int, data: st.DataObject
) -> None:
    hosts: list[Host] = []
    hosts += [Host(number, hosts, DEVICE_BYTES) for number in range(HOSTS)]
    x = np.arange(16.0).reshape(SPEC.shape)
    begin = data.draw(st.integers(0, len(unbounded)))
    lowered = lower(*drawn, [AT_CLIENT] * 3)
    given_data = [x, x, np.array(True)]
    numbers = range(1, len(unbounded) + 1)
    for number, each in enumerate(unbounded):
        if number == begin:
            start(hosts, len(unbounded), lowered, [-1] * 3, given_data, first=100, stretch=data.draw(st.integers(1, 5)))
        start(hosts, number, each, [-1], [x + 4 * number], first=number + 1, stretch=1)

    def choose(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    released: set[int] = set()
    aborted: set[int] = set()
    for _ in range(steps):
        if possible := [step for host in hosts for step in host.steps()]:
            possible[choose(len(possible))]()
    for number in data.draw(st.lists(st.sampled_from(numbers), max_size=2)):
        is_released = data.draw(st.booleans())
        (released if is_released else aborted).add(number)
        for host in hosts:
            release = partial(host.store.release, CLIENT, [number])
            abort = partial(host.dataflow.abort, number - 1, LOST)
            host.wire.setdefault(-1, deque()).append(release if is_released else abort)
    run_all(hosts, choose)
    rows = {(each.handle, each.shard): each.rows for host in hosts for each in host.told}
    for number, each in zip(numbers, unbounded, strict=True):
        layout = each.layout(Value(1))
        for shard, host in enumerate(layout.placement.hosts):
            part = x + 4 * (number - 1)
            if layout.sharding.axis == 0:
                indices = layout.sharding.indices(SPEC, shard)
                part = part[indices.start : indices.stop]
            expected = part.repeat(int(part[0, 0]) % 4, axis=0)
            found: list[Found] = []
            hosts[host].store.when_there(CLIENT, number, shard, found.append)
            assert len(found) == 1, "a shard still waits"
            if isinstance(found[0], Failure):
                assert number in released | aborted
            else:
                assert (found[0] == expected).all()
                assert rows[number, shard] == len(expected)
    for host in hosts:
        assert (host.dataflow.running, host.store.memory.stalled) == (0, 0)
        host.store.release(CLIENT, range(200))
        assert host.store.handles == 0
        assert set(host.store.memory.used_bytes.values()) == {0}
