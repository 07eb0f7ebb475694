"""What a job registers, from the reports of its ranks: flow groups, connections, profile and task graph."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.task_graph import Computation, TaskGraph, Transfer, check_sends
from hostlib.torch.measurement import GroupTimes, Measurement
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints
from hostlib.torch.template import addresses_of, profile_of, task_graph_of, template_of
from hostlib.types import FiveTuple, Flow, Nic, Profile

TIMES = GroupTimes(release_s=0.2, slack_s=0.3)


def address_of(host: int) -> IPv4Address:
    return IPv4Address(f"10.0.0.{host + 1}")


NICS = {address_of(host): Nic(f"h{host}") for host in range(4)}


def connection(source: int, port: int, destination: int, peer_port: int) -> Endpoints:
    """A connection between hosts, as the first of them sees it."""
    return Endpoints(address_of(source), port, address_of(destination), peer_port)


def group(
    name: str,
    ranks: Sequence[int],
    sent_bytes: Mapping[int, int],
    connections: Sequence[Endpoints] = (),
    role: str = "data",
    backend: str = "gloo",
) -> GroupReport:
    return GroupReport(name, role, backend, tuple(ranks), dict(sent_bytes), tuple(connections), TIMES)


def report(
    rank: int,
    *groups: GroupReport,
    host: int | None = None,
    unowned: Sequence[Endpoints] = (),
    address: IPv4Address | None = None,
) -> RankReport:
    times = {each.name: each.times for each in groups}
    address = address or address_of(rank if host is None else host)
    return RankReport(rank, address, Measurement(2.0, 1.0, times), groups, tuple(unowned))


def five_tuple(endpoints: Endpoints) -> FiveTuple:
    return FiveTuple(endpoints.address, endpoints.peer_address, 6, endpoints.port, endpoints.peer_port)


def test_two_ranks_of_a_ring_send_to_each_other_over_one_connection() -> None:
    ends = connection(0, 1000, 1, 2000)
    found = template_of(
        "job",
        [report(0, group("0", (0, 1), {1: 600}, [ends])), report(1, group("0", (0, 1), {0: 600}, [ends.reversed]))],
        NICS,
    )
    (flow_group,) = found.flow_groups
    assert flow_group.name == "data 0"
    assert flow_group.flows == (
        Flow(Nic("h0"), Nic("h1"), 600, five_tuple=five_tuple(ends)),
        Flow(Nic("h1"), Nic("h0"), 600, five_tuple=five_tuple(ends.reversed)),
    )
    assert found.connections["data 0", 1].endpoints == ends.reversed
    assert found.job is not None
    assert (found.job.name, found.job.hosts, found.job.gpus) == ("job", ("h0", "h1"), 2)
    assert found.job.profile == Profile(1.0, 0.2, 2.0)
    assert found.unknown == frozenset()


def test_in_a_ring_of_three_acknowledgements_go_against_the_data() -> None:
    ends = {(rank, (rank + 1) % 3): connection(rank, 1000 + rank, (rank + 1) % 3, 2000 + rank) for rank in range(3)}
    reports = [
        report(
            rank,
            group(
                "0",
                (0, 1, 2),
                {(rank + 1) % 3: 10_000},
                [ends[rank, (rank + 1) % 3], ends[(rank - 1) % 3, rank].reversed],
            ),
        )
        for rank in range(3)
    ]
    found = template_of("job", reports, NICS)
    sizes = {
        (flow.source.host, flow.destination.host): (flow.size_bytes, flow.five_tuple)
        for flow in found.flow_groups[0].flows
    }
    assert sizes == {
        **{
            (f"h{source}", f"h{destination}"): (10_000, five_tuple(each))
            for (source, destination), each in ends.items()
        },
        **{
            (f"h{destination}", f"h{source}"): (200, five_tuple(each.reversed))
            for (source, destination), each in ends.items()
        },
    }


def test_ranks_are_counted_in_the_job_and_flow_groups_come_in_their_order() -> None:
    far, near = connection(1, 1, 3, 2), connection(0, 3, 2, 4)
    reports = [
        report(0, group("b", (0, 2), {2: 5}, [near])),
        report(1, group("a", (1, 3), {3: 7}, [far], role="tensor")),
        report(2, group("b", (0, 2), {0: 5}, [near.reversed])),
        report(3, group("a", (1, 3), {1: 7}, [far.reversed], role="tensor")),
    ]
    found = template_of("job", reports, NICS)
    assert [each.name for each in found.flow_groups] == ["data b", "tensor a"]
    senders = {key: (each.source, each.destination) for key, each in found.connections.items()}
    assert senders == {
        ("data b", 0): (0, 2),
        ("data b", 1): (2, 0),
        ("tensor a", 0): (1, 3),
        ("tensor a", 1): (3, 1),
    }
    assert found.job is not None
    assert set(found.job.hosts) == {"h0", "h1", "h2", "h3"}


def test_groups_of_the_same_ranks_have_the_connections_that_each_has_opened() -> None:
    data, tensor = connection(0, 1, 1, 2), connection(0, 3, 1, 4)
    reports = [
        report(0, group("0", (0, 1), {1: 5}, [data]), group("1", (0, 1), {1: 7}, [tensor], role="tensor")),
        report(
            1,
            group("0", (0, 1), {0: 5}, [data.reversed]),
            group("1", (0, 1), {0: 7}, [tensor.reversed], role="tensor"),
        ),
    ]
    found = template_of("job", reports, NICS)
    assert {name: each.endpoints for (name, flow), each in found.connections.items() if flow == 0} == {
        "data 0": data,
        "tensor 1": tensor,
    }


def test_a_connection_that_only_one_end_knows_is_not_theirs() -> None:
    elsewhere = connection(0, 9, 1, 9)
    reports = [report(0, group("0", (0, 1), {1: 5}, [elsewhere])), report(1, group("0", (0, 1), {0: 5}))]
    found = template_of("job", reports, NICS)
    assert [flow.five_tuple for flow in found.flow_groups[0].flows] == [None, None]


def test_connections_that_no_group_has_opened_are_taken_once() -> None:
    # Ports are such that text sorts the ends of the two differently from each side.
    one, other = connection(0, 100, 1, 20), connection(0, 200, 1, 10)
    reports = [
        report(0, group("0", (0, 1), {1: 5}), group("1", (0, 1), {1: 7}), unowned=[one, other]),
        report(1, group("0", (0, 1), {0: 5}), group("1", (0, 1), {0: 7}), unowned=[one.reversed, other.reversed]),
    ]
    found = template_of("job", reports, NICS)
    taken = {key: each.endpoints for key, each in found.connections.items()}
    assert taken == {
        ("data 0", 0): one,
        ("data 0", 1): one.reversed,
        ("data 1", 0): other,
        ("data 1", 1): other.reversed,
    }


def test_a_connection_that_one_group_has_taken_leaves_the_next_without() -> None:
    only = connection(0, 100, 1, 20)
    reports = [
        report(0, group("0", (0, 1), {1: 5}), group("1", (0, 1), {1: 7}), unowned=[only]),
        report(1, group("0", (0, 1), {0: 5}), group("1", (0, 1), {0: 7}), unowned=[only.reversed]),
    ]
    found = template_of("job", reports, NICS)
    assert [each.five_tuple is None for each in found.flow_groups[0].flows] == [False, False]
    assert [each.five_tuple is None for each in found.flow_groups[1].flows] == [True, True]


def test_what_stays_inside_a_host_crosses_no_network() -> None:
    inside, across = connection(0, 1, 0, 2), connection(0, 3, 1, 4)
    reports = [
        report(0, group("0", (0, 1, 2), {1: 5}, [inside]), host=0),
        report(1, group("0", (0, 1, 2), {2: 5}, [inside.reversed, across]), host=0),
        report(2, group("0", (0, 1, 2), {0: 5}, [across.reversed]), host=1),
    ]
    found = template_of("job", reports, NICS)
    assert [(each.source, each.destination) for each in found.connections.values()] == [(2, 0), (1, 2), (2, 1)]
    assert found.job is not None
    assert (found.job.hosts, found.job.gpus) == (("h0", "h1"), 3)


def test_a_job_on_one_host_registers_nothing() -> None:
    reports = [report(rank, group("0", (0, 1), {1 - rank: 5}), host=0) for rank in range(2)]
    found = template_of("job", reports, NICS)
    assert (found.job, found.flow_groups, found.task_graph, found.unknown) == (None, (), None, frozenset())


def test_addresses_that_the_fabric_does_not_have_are_named() -> None:
    stranger = IPv4Address("192.0.2.7")
    reports = [report(0, group("0", (0, 1), {1: 5})), report(1, group("0", (0, 1), {0: 5}), address=stranger)]
    found = template_of("job", reports, NICS)
    assert (found.job, found.unknown) == (None, frozenset({stranger}))


def test_ranks_that_are_elsewhere_leave_the_flows_of_the_others() -> None:
    stranger = IPv4Address("192.0.2.7")
    reports = [
        report(0, group("0", (0, 1, 2), {1: 5})),
        report(1, group("0", (0, 1, 2), {2: 5})),
        report(2, group("0", (0, 1, 2), {0: 5}), address=stranger),
    ]
    found = template_of("job", reports, NICS)
    assert [(each.source, each.destination) for each in found.connections.values()] == [(0, 1)]
    assert found.unknown == frozenset({stranger})


def test_a_transport_without_connections_has_no_acknowledgements() -> None:
    reports = [
        report(rank, group("0", (0, 1, 2), {(rank + 1) % 3: 50}, role="sharded", backend="nccl")) for rank in range(3)
    ]
    found = template_of("job", reports, NICS)
    flows = [(flow.source.host, flow.destination.host, flow.size_bytes) for flow in found.flow_groups[0].flows]
    assert sorted(flows) == [("h0", "h1", 50), ("h1", "h2", 50), ("h2", "h0", 50)]


def test_the_fabric_is_asked_for_all_addresses_once() -> None:
    reports = [
        report(0, group("0", (0, 1), {1: 5}, [connection(2, 1, 1, 2)])),
        report(1, group("0", (0, 1), {0: 5}), unowned=[connection(1, 2, 3, 4)]),
    ]
    assert addresses_of(reports) == tuple(address_of(host) for host in range(4))


def test_a_slash_in_a_group_s_name_is_replaced() -> None:
    reports = [report(rank, group("a/b", (0, 1), {1 - rank: 5})) for rank in range(2)]
    assert template_of("job", reports, NICS).flow_groups[0].name == "data a-b"


# ---- the task graph --------------------------------------------------------------------------------------------------


def graph(compute_s: float, *times: tuple[float, float]) -> TaskGraph:
    named = [(f"g{at}", GroupTimes(*each)) for at, each in enumerate(times)]
    return task_graph_of(Measurement(compute_s, compute_s, {}), named)


def length_s(found: TaskGraph, transfers_s: Mapping[str, float]) -> float:
    """How long an iteration takes where each transfer takes so long."""
    ends: list[float] = []
    for task in found.tasks:
        takes_s = task.duration_s if isinstance(task, Computation) else transfers_s[task.flow_group]
        ends.append(max((ends[each] for each in task.after), default=0.0) + takes_s)
    return max(ends)


def test_what_has_slack_is_sent_while_others_compute() -> None:
    assert graph(1.0, (0.25, 0.25)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.25, after=(0,)),
        Computation(0.5, after=(2, 1)),
    )


def test_what_has_no_slack_is_waited_for_at_once() -> None:
    assert graph(1.0, (0.25, 0.0)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.75, after=(0, 1)),
    )


def test_what_is_needed_at_the_end_is_waited_for_by_the_next_iteration_alone() -> None:
    assert graph(1.0, (0.25, 9.0)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.75, after=(0,)),
    )


def test_what_is_released_at_once_waits_for_nothing() -> None:
    assert graph(1.0, (0.0, 0.5)).tasks == (
        Transfer("g0"),
        Computation(0.5),
        Computation(0.5, after=(1, 0)),
    )


def test_an_iteration_that_only_communicates_computes_for_a_microsecond() -> None:
    found = graph(0.0, (0.0, 0.0))
    assert [task.duration_s for task in found.tasks if isinstance(task, Computation)] == [1e-6]
    assert length_s(found, {"g0": 1.0}) == pytest.approx(1.0, abs=2e-6)


def test_serial_transfers_add_up_and_hidden_ones_do_not() -> None:
    found = graph(1.0, (0.2, 0.0), (0.4, 0.0), (0.5, 0.4))
    assert length_s(found, {"g0": 0.3, "g1": 0.2, "g2": 0.4}) == pytest.approx(1.5)
    assert length_s(found, {"g0": 0.0, "g1": 0.0, "g2": 0.6}) == pytest.approx(1.2)


_SECONDS = st.floats(0.0, 20.0)


@given(
    compute_s=_SECONDS,
    times=st.lists(st.tuples(st.floats(-1.0, 20.0), _SECONDS), min_size=1, max_size=5),
    takes_s=_SECONDS,
)
def test_every_task_graph_computes_as_long_as_was_measured_and_sends_all_once(
    compute_s: float, times: list[tuple[float, float]], takes_s: float
) -> None:
    found = graph(compute_s, *times)
    names = [f"g{at}" for at in range(len(times))]
    assert sorted(task.flow_group for task in found.tasks if isinstance(task, Transfer)) == names
    assert length_s(found, dict.fromkeys(names, 0.0)) == pytest.approx(max(compute_s, 1e-6), abs=2e-6)
    # One transfer delays by what exceeds its slack, at most.
    for name, (release_s, slack_s) in zip(names, times, strict=True):
        release_s = min(max(release_s, 0.0), compute_s)
        needed_s = min(release_s + slack_s, compute_s)
        expected_s = compute_s + max(0.0, release_s + takes_s - needed_s)
        assert length_s(found, dict.fromkeys(names, 0.0) | {name: takes_s}) == pytest.approx(expected_s, abs=1e-5)


@given(compute_s=st.floats(0.0, 1e6), times=st.lists(st.tuples(_SECONDS, _SECONDS), min_size=1, max_size=3))
def test_every_profile_is_one_that_the_controller_takes(compute_s: float, times: list[tuple[float, float]]) -> None:
    profile = profile_of(
        Measurement(compute_s, compute_s, {}), [(f"g{at}", GroupTimes(*each)) for at, each in enumerate(times)], gpus=4
    )
    assert profile.work == 4 * profile.compute_s
    assert profile.compute_s == max(compute_s, 1e-6)


@given(
    st.lists(
        st.tuples(st.sampled_from([(0, 1), (0, 1, 2), (1, 2), (0, 3), (0, 1, 2, 3)]), st.integers(0, 1000)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_every_task_graph_fits_its_flow_groups(rings: list[tuple[tuple[int, ...], int]], hosts: list[int]) -> None:
    reports = []
    for rank in range(4):
        groups = [
            group(str(name), ranks, {ranks[(ranks.index(rank) + 1) % len(ranks)]: size_bytes})
            for name, (ranks, size_bytes) in enumerate(rings)
            if rank in ranks
        ]
        reports.append(report(rank, *groups, host=hosts[rank]))
    found = template_of("job", reports, NICS)
    if found.task_graph is None:
        assert found.flow_groups == ()
        return
    check_sends(found.task_graph, found.flow_groups)
    assert {task.flow_group for task in found.task_graph.tasks if isinstance(task, Transfer)} == {
        each.name for each in found.flow_groups
    }
    for each in found.flow_groups:
        for at, flow in enumerate(each.flows):
            assert flow.source.host != flow.destination.host
            assert (each.name, at) in found.connections
