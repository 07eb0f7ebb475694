"""What a job registers, from the reports of its ranks: flow groups, connections, profile and task graph."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from hostlib.task_graph import Computation, Transfer, check_sends
from hostlib.torch.measurement import GroupTimes, Measurement
from hostlib.torch.pipelines import Action, Pass
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints
from hostlib.torch.template import addresses_of, template_of
from hostlib.types import FiveTuple, Flow, FlowGroup, Nic, Profile

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


# ---- pipelines -------------------------------------------------------------------------------------------------------

# 1F1B with two stages and three micro-batches; a forward pass takes 1, a backward pass 2, and the optimizer 0.5.
_ORDERS = ("F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2")
_BUSY_S, _LENGTH_S = 9.5, 12.5


def passes(stage: int, order: str) -> tuple[Action, ...]:
    found: list[Action] = []
    for kind, micro_batch in order.split():
        begin_s = found[-1].end_s if found else 0.0
        what, takes_s = (Pass.FORWARD, 1.0) if kind == "F" else (Pass.BACKWARD, 2.0)
        found.append(Action(what, stage, int(micro_batch), begin_s, begin_s + takes_s))
    return tuple(found)


def stage(rank: int, *others: GroupReport, name: str = "0", order: str | None = None) -> RankReport:
    """The report of a rank of a pipeline of two ranks, of which the one with the even number comes first."""
    peer = rank ^ 1
    ends = connection(min(rank, peer), 1000, max(rank, peer), 2000)
    own = group(
        name,
        (min(rank, peer), max(rank, peer)),
        {peer: 700 + rank},
        [ends if rank < peer else ends.reversed],
        "pipeline",
    )
    found = report(rank, own, *others)
    table = passes(rank % 2, _ORDERS[rank % 2] if order is None else order)
    return replace(found, measurement=replace(found.measurement, compute_s=_BUSY_S, passes={name: table}))


def test_a_pipeline_has_a_flow_group_for_each_direction_with_times_by_its_schedule() -> None:
    found = template_of("job", [stage(0), stage(1)], NICS)
    ends = connection(0, 1000, 1, 2000)
    assert found.flow_groups == (
        FlowGroup("pipeline 0 0-1", (Flow(Nic("h0"), Nic("h1"), 700, five_tuple=five_tuple(ends)),)),
        FlowGroup("pipeline 0 1-0", (Flow(Nic("h1"), Nic("h0"), 701, five_tuple=five_tuple(ends.reversed)),)),
    )
    assert found.connections["pipeline 0 1-0", 0].source == 1
    assert found.job is not None
    assert found.job.profile == Profile(_LENGTH_S, 1 / _LENGTH_S, 2 * _BUSY_S)
    # The second activation is there at 2 and needed at 4; no gradient can wait.
    assert found.task_graph is not None
    assert found.task_graph.tasks == (
        Computation(1.0),
        Transfer("pipeline 0 0-1", after=(0,)),
        Computation(2.0, after=(0,)),
        Computation(7.0, after=(2, 1)),
        Computation(4.0),
        Transfer("pipeline 0 1-0", after=(4,)),
        Computation(6.0, after=(4, 5)),
        Computation(10.0),
        Computation(2.5, after=(7, 3, 6)),
    )


def test_a_direction_that_only_acknowledges_belongs_to_the_other_one() -> None:
    forward = [stage(rank, order="F0 F1") for rank in range(2)]
    found = template_of("job", forward, NICS)
    assert [(each.name, len(each.flows)) for each in found.flow_groups] == [("pipeline 0 0-1", 2)]


def test_a_pipeline_of_which_passes_are_lacking_is_registered_by_its_waits() -> None:
    for order in ("", "F0 B0 F1 B1", "F2 B2 F1 B1 F0 B0"):
        found = template_of("job", [stage(0), stage(1, order=order)], NICS)
        assert [(each.name, len(each.flows)) for each in found.flow_groups] == [("pipeline 0", 2)]
        assert found.task_graph is not None
        assert [task.flow_group for task in found.task_graph.tasks if isinstance(task, Transfer)] == ["pipeline 0"]


def test_what_replicas_reduce_after_their_pipelines_comes_after_the_bubbles() -> None:
    reports = []
    for rank in range(4):
        ranks = (rank % 2, rank % 2 + 2)
        peer = ranks[1] if rank < 2 else ranks[0]
        # Reduced from the end of the last backward pass on, and needed when that ends: all of it is waited for.
        data = replace(group(f"d{rank % 2}", ranks, {peer: 90}), times=GroupTimes(9.0, 0.0))
        reports.append(stage(rank, data, name=f"p{rank // 2}"))
    found = template_of("job", reports, NICS)
    assert [each.name for each in found.flow_groups] == [
        *("pipeline p0 0-1", "pipeline p0 1-0"),
        *("data d0", "data d1"),
        *("pipeline p1 2-3", "pipeline p1 3-2"),
    ]
    assert found.task_graph is not None
    ends_s: list[float] = []
    releases_s: dict[str, float] = {}
    for task in found.task_graph.tasks:
        begin_s = max((ends_s[each] for each in task.after), default=0.0)
        if isinstance(task, Transfer):
            releases_s[task.flow_group] = begin_s
        ends_s.append(begin_s + (task.duration_s if isinstance(task, Computation) else 0.0))
    # Without bubbles, all would be reduced at 9. The first stage ends its passes at 12, the second one at 10.
    assert (releases_s["data d0"], releases_s["data d1"]) == (12.0, 10.0)
    assert max(ends_s) == _LENGTH_S


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
