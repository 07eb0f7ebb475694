from dataclasses import replace

import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.assign import AT_CLIENT, Layout, Placement
from runtime.lowering.cache import LoweringCache
from runtime.lowering.subprograms import HostPlan, LoweredProgram, Taker, lower
from runtime.messages import LoadSubprogram
from runtime.messages.encoding import decode, encode
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.programs import chain

SLICES = {0: Placement("x", (0, 0), (0, 1)), 1: Placement("y", (1, 1, 2, 2), (0, 1, 0, 1))}


def plan(host: int) -> str:
    lowered = lower(chain(4, 2, 4), SLICES, [AT_CLIENT])
    return str(HostPlan(lowered.subprograms[lowered.subprogram_of_host[host]], host))


def test_the_producer_sends_halves_of_its_shards_straight_to_their_hosts() -> None:
    assert plan(0) == (
        "host 0 of chain {\n"
        "  %1 = a: shard 0 on device 0, shard 1 on device 1\n"
        "  edge 0 shard 0: %0 for input 0 of %1, 1 pieces\n"
        "  edge 0 shard 1: %0 for input 0 of %1, 1 pieces\n"
        "  send [0:1] of %1 shard 0 to host 1 as edge 1 shard 0\n"
        "  send [1:2] of %1 shard 0 to host 1 as edge 1 shard 1\n"
        "  send [0:1] of %1 shard 1 to host 2 as edge 1 shard 2\n"
        "  send [1:2] of %1 shard 1 to host 2 as edge 1 shard 3\n"
        "}"
    )


def test_a_consumer_knows_what_it_waits_for() -> None:
    assert plan(2) == (
        "host 2 of chain {\n"
        "  %2 = b: shard 2 on device 0, shard 3 on device 1\n"
        "  edge 1 shard 2: %1 for input 0 of %2, 1 pieces\n"
        "  edge 1 shard 3: %1 for input 0 of %2, 1 pieces\n"
        "}"
    )


def passed(*taken: tuple[int, tuple[Sharding, ...]]) -> LoweredProgram:
    """What the first slice makes, and calls that take it: the slice of each, and the sharding of each input."""
    spec, halves = ArraySpec((4,), "float64"), Sharding(0, 2)
    calls = [Call(0, "make", 0, (Input(Value(0), halves),), (Output(spec, halves),))]
    for slice_, shardings in taken:
        inputs = tuple(Input(Value(1), each) for each in shardings)
        calls.append(Call(0, "take", slice_, inputs, (Output(spec, shardings[0]),)))
    return lower(Program("passed", (spec,), tuple(calls), (Value(2),)), SLICES, [AT_CLIENT])


def takers(lowered: LoweredProgram) -> list[tuple[Taker, ...]]:
    return [edge.takers for edge in lowered.edges if edge.value == Value(1)]


QUARTERS, WHOLES = Sharding(0, 4), Sharding(None, 4)


def test_what_two_calls_take_alike_is_sent_once() -> None:
    lowered = passed((1, (QUARTERS,)), (1, (QUARTERS,)))
    assert takers(lowered) == [((2, 0), (3, 0))]
    sender, receiver = (HostPlan(lowered.subprograms[lowered.subprogram_of_host[host]], host) for host in (0, 1))
    assert [len(sends) for (value, _), sends in sender.sends.items() if value == Value(1)] == [2, 2]
    assert str(receiver) == (
        "host 1 of passed {\n"
        "  %2 = take: shard 0 on device 0, shard 1 on device 1\n"
        "  %3 = take: shard 0 on device 0, shard 1 on device 1\n"
        "  edge 1 shard 0: %1 for input 0 of %2 and input 0 of %3, 1 pieces\n"
        "  edge 1 shard 1: %1 for input 0 of %2 and input 0 of %3, 1 pieces\n"
        "}"
    )


def test_what_calls_take_in_other_shardings_or_elsewhere_is_sent_for_each() -> None:
    assert takers(passed((1, (QUARTERS,)), (1, (WHOLES,)))) == [((2, 0),), ((3, 0),)]
    halves = Sharding(0, 2)
    assert takers(passed((1, (QUARTERS,)), (0, (halves,)), (1, (QUARTERS,)))) == [((2, 0), (4, 0)), ((3, 0),)]


def test_a_call_may_take_a_value_twice() -> None:
    assert takers(passed((1, (QUARTERS, QUARTERS, WHOLES)))) == [((2, 0), (2, 1)), ((2, 2),)]


def test_a_further_taker_adds_two_numbers_to_what_a_host_is_told() -> None:
    lowered = [passed((1, (QUARTERS,) * inputs)) for inputs in (1, 9)]
    told = [LoadSubprogram(0, each.subprograms[each.subprogram_of_host[1]], (0,)) for each in lowered]
    assert all(decode(encode(each)) == each for each in told)
    without_calls = [replace(each, subprogram=replace(each.subprogram, calls=())) for each in told]
    one, nine = (len(encode(each)) for each in without_calls)
    assert nine - one == 8 * len("[2,1],")


def test_hosts_of_the_same_slices_share_a_subprogram() -> None:
    lowered = lower(chain(4, 2, 4), SLICES, [AT_CLIENT])
    assert len(lowered.subprograms) == 2
    assert lowered.subprogram_of_host[1] == lowered.subprogram_of_host[2]


def test_hosts_for_which_others_wait_come_first() -> None:
    arrays_of_1 = Layout(Sharding(0, 4), SLICES[1])
    assert list(lower(chain(4, 2, 4), SLICES, [AT_CLIENT]).subprogram_of_host) == [0, 1, 2]
    assert list(lower(chain(4, 2, 4), SLICES, [arrays_of_1]).subprogram_of_host) == [1, 2, 0]


def test_a_slice_of_another_size_is_refused_by_name() -> None:
    slices = {0: SLICES[0], 1: Placement("y", (1,), (0,))}
    with pytest.raises(ValueError, match="chain: b has 4 shards, and slice 1 has 1 devices"):
        lower(chain(4, 2, 4), slices, [AT_CLIENT])
    with pytest.raises(ValueError, match="chain: b: slice 1 has no devices"):
        lower(chain(4, 2, 4), {0: SLICES[0]}, [AT_CLIENT])


def test_a_program_is_lowered_once_for_each_place_of_its_arguments_and_each_epoch() -> None:
    cache, program = LoweringCache(), chain(4, 2, 4)
    here = Layout(Sharding(0, 2), SLICES[0])
    first = cache.lowered(5, program, 0, SLICES, [AT_CLIENT])
    assert cache.lowered(5, program, 0, SLICES, [AT_CLIENT]) is first
    elsewhere = cache.lowered(5, program, 0, SLICES, [here])
    assert elsewhere is not first
    assert cache.lowered(5, program, 0, SLICES, [Layout(Sharding(0, 2), SLICES[0])]) is elsewhere
    assert cache.lowered(5, program, 1, SLICES, [AT_CLIENT]) is not first
