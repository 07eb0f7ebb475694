import pytest

from runtime.arrays import Sharding
from runtime.lowering.assign import AT_CLIENT, Layout, Placement
from runtime.lowering.cache import LoweringCache
from runtime.lowering.subprograms import HostPlan, lower
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
