"""Flow groups of programs worked out by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from hostlib import Computation, FlowGroup, Nic, Transfer, arrangements
from hostlib.task_graph import check_sends
from runtime.arrays import Sharding
from runtime.functions import timer
from runtime.lowering.assign import Layout, Placement
from runtime.mapping import pmap
from runtime.network.transfers import MAX_FLOWS, template
from runtime.pipelines import gpipe, one_forward_one_backward
from tests.runtime.network.islands import Slice, array, lowered, nics, pipeline, slices, template_of


def offsets_s(group: FlowGroup) -> list[float]:
    return [flow.offset_s for flow in group.flows]


def sends(group: FlowGroup) -> list[tuple[str, str, int]]:
    return [(flow.source.host, flow.destination.host, flow.size_bytes) for flow in group.flows]


def move(of: Sequence[Slice], x: Any, *, in_axis: int | None = 0, out_axis: int | None = 0) -> Any:
    """A call on the first slice, and one that takes its result on the second."""
    made = pmap(timer(1.0), devices=of[0], out_axes=out_axis)(x)
    return pmap(timer(2.0), devices=of[1], in_axes=in_axis)(made)


def test_gpipe_is_staggered_by_the_receiving_stage() -> None:
    found = pipeline(gpipe, 3, 4, forward_s=1.0, backward_s=2.0)
    by_name = {group.name: group for group in found.groups}
    assert list(by_name) == ["i0 to i1", "i1 to i2", "i2 to i1", "i1 to i0"]
    assert offsets_s(by_name["i0 to i1"]) == list(arrangements.staggered(4, 1.0))
    assert offsets_s(by_name["i2 to i1"]) == list(arrangements.staggered(4, 3.0))
    assert offsets_s(by_name["i1 to i0"]) == list(arrangements.staggered(4, 3.0))
    assert sends(by_name["i0 to i1"]) == [("h0", "h1", 400)] * 4


def test_the_last_stage_of_gpipe_needs_first_what_is_sent_last() -> None:
    found = pipeline(gpipe, 2, 3, forward_s=1.0, backward_s=2.0)
    assert offsets_s(found.groups[0]) == [6.0, 3.0, 0.0]


@pytest.mark.parametrize("consumer", [1, 2, 3])
def test_1f1b_has_the_offsets_of_its_formula(consumer: int) -> None:
    found = pipeline(one_forward_one_backward, 4, 8, forward_s=1.0, backward_s=2.0)
    by_name = {group.name: group for group in found.groups}
    sent = offsets_s(by_name[f"i{consumer - 1} to i{consumer}"])
    assert sent == list(arrangements.one_forward_one_backward(8, 4, consumer, 1.0, 2.0))
    assert offsets_s(by_name[f"i{consumer} to i{consumer - 1}"]) == list(arrangements.staggered(8, 3.0))


def test_islands_that_swap_gradients_send_two_coflows() -> None:
    placements = slices((0, 0, 1, 1), (2, 2, 3, 3))

    def step(of: Sequence[Slice], *parameters: Any) -> Any:
        made = [
            [pmap(timer(1.0), devices=each)(own) for _ in range(2)] for each, own in zip(of, parameters, strict=True)
        ]
        return [
            pmap(timer(0.5), devices=each)(own, *made[0], *made[1]) for each, own in zip(of, parameters, strict=True)
        ]

    found = template_of(step, [array(100)] * 2, placements)
    assert found is not None
    assert [group.name for group in found.groups] == ["i1 to i0", "i0 to i1"]
    assert sends(found.groups[1]) == [("h0", "h2", 200), ("h1", "h3", 200)] * 2
    assert offsets_s(found.groups[0]) == [0.0] * 4
    assert found.profile.compute_s == 2.5
    assert found.profile.comm_start == 1.0 / 2.5
    assert found.profile.work == 2.5 * 8
    assert (found.hosts, found.devices) == (("h0", "h1", "h2", "h3"), 8)


def test_pieces_of_one_edge_between_two_hosts_are_one_flow() -> None:
    found = template_of(move, [array(12)], slices((0, 0, 1, 1), (2, 2, 3)))
    assert found is not None
    (group,) = found.groups
    assert sends(group) == [("h0", "h2", 24), ("h1", "h2", 8), ("h1", "h3", 16)]
    assert dict(found.flow_of) == {
        (1, 0, 0): (0, 0),
        (1, 1, 0): (0, 0),
        (1, 1, 1): (0, 0),
        (1, 2, 1): (0, 1),
        (1, 2, 2): (0, 2),
        (1, 3, 2): (0, 2),
    }
    assert found.flow_of.of_edge(1) == {(0, 2): (0, 0), (1, 2): (0, 1), (1, 3): (0, 2)}
    assert found.flow_of.of_edge(0) == {}


def test_every_shard_goes_to_every_shard_where_axes_differ() -> None:
    def step(of: Sequence[Slice], x: Any) -> Any:
        return move(of, x, in_axis=1)

    found = template_of(step, [array(8, 12)], slices((0, 0, 1, 1), (2, 2, 3)))
    assert found is not None
    assert sends(found.groups[0]) == [("h0", "h2", 128), ("h0", "h3", 64), ("h1", "h2", 128), ("h1", "h3", 64)]
    assert len(found.flow_of) == 4 * 3


def test_what_does_not_meet_has_no_flow() -> None:
    found = template_of(move, [array(12)], slices((0, 0), (2, 3)))
    assert found is not None
    for key in ((1, 0, 1), (0, 0, 0), (1, 2, 1), (1, 0, 2), (1, -1, 0), (7, 0, 0)):
        assert key not in found.flow_of


def test_an_argument_on_another_island_is_sent_at_the_start() -> None:
    placements = slices((0,), (1,))

    def step(of: Sequence[Slice], x: Any) -> Any:
        return pmap(timer(1.0), devices=of[1])(x)

    found = template_of(step, [array(4)], placements, [Layout(Sharding(0, 1), placements[0])])
    assert found is not None
    assert found.profile.comm_start == 0.0
    assert found.graph is not None
    assert found.graph.tasks == (Transfer("i0 to i1", (0,)), Computation(1.0, (0,)))


def test_calls_wait_for_what_had_their_devices() -> None:
    def step(of: Sequence[Slice], x: Any) -> Any:
        first, second = pmap(timer(1.0), devices=of[0]), pmap(timer(2.0), devices=of[0])
        return pmap(timer(3.0), devices=of[1])(second(x)), first(x)

    found = template_of(step, [array(4)], slices((0, 0), (1, 1)))
    assert found is not None
    assert found.graph is not None
    assert found.graph.tasks == (
        Computation(2.0),
        Transfer("i0 to i1", (0,), (0,)),
        Computation(3.0, (1,)),
        Computation(1.0, (0,)),
    )
    check_sends(found.graph, found.groups)


def test_a_program_on_one_island_or_on_one_machine_sends_nothing() -> None:
    island = Placement("i", (0,), (0,)), Placement("i", (1,), (0,))
    assert template_of(move, [array(4)], dict(enumerate(island))) is None
    program = lowered(move, [array(4)], slices((0,), (1,)))
    assert template(*program, {0: Nic("h"), 1: Nic("h", 1)}) is None


def test_arguments_of_the_client_are_no_transfers() -> None:
    def step(of: Sequence[Slice], x: Any) -> Any:
        return [pmap(timer(1.0), devices=each)(x) for each in of]

    assert template_of(step, [array(4)], slices((0,), (1,))) is None


def test_a_host_without_a_nic_is_refused_by_name() -> None:
    placements = slices((0,), (1,))
    program = lowered(move, [array(4)], placements)
    with pytest.raises(ValueError, match="host 1 has no NIC"):
        template(*program, {0: nics(placements)[0]})


def test_names_of_islands_become_names_of_groups() -> None:
    odd = {0: Placement("a/b", (0,), (0,)), 1: Placement("a_b", (1,), (0,)), 2: Placement("x" * 300, (2,), (0,))}

    def step(of: Sequence[Slice], x: Any) -> Any:
        one, other = (pmap(timer(1.0), devices=each)(x) for each in of[:2])
        return pmap(timer(1.0), devices=of[2])(one, other)

    found = template_of(step, [array(4)], odd)
    assert found is not None
    assert [group.name for group in found.groups] == [f"a_b to {'x' * 100}", f"a_b to {'x' * 100} #2"]


def test_calls_that_take_no_time_take_a_nanosecond() -> None:
    def step(of: Sequence[Slice], x: Any) -> Any:
        return pmap(timer(0.0), devices=of[1])(pmap(timer(0.0), devices=of[0])(x))

    found = template_of(step, [array(4)], slices((0,), (1,)))
    assert found is not None
    assert found.profile.compute_s == 2e-9


def test_too_many_tasks_leave_the_graph_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.network.transfers.MAX_TASKS", 2)
    found = template_of(move, [array(4)], slices((0,), (1,)))
    assert found is not None
    assert found.graph is None
    assert len(found.groups) == 1


def test_too_many_flows_are_refused() -> None:
    hosts = 320
    placements = slices(range(hosts), range(hosts, 2 * hosts))
    program = lowered(lambda of, x: move(of, x, in_axis=1), [array(hosts, hosts)], placements)
    assert hosts * hosts > MAX_FLOWS
    with pytest.raises(ValueError, match=r"room for 100,000 flows of a program, not for 102,400"):
        template(*program, nics(placements))
