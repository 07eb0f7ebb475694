from ipaddress import IPv4Address
from itertools import count
from typing import Any

import pytest

from hostlib import Computation, Directives, FiveTuple, FlowDirective, Nic, Path, Transfer
from runtime.network.transfers import Template, template
from runtime.server.registrations import Registration
from tests.runtime.server.test_plans import planned

NICS = {0: Nic("h0"), 2: Nic("h2")}
NOBODY: Any = None


def template_of(plan: Any) -> Template:
    made = template(plan.lowered, lambda node: plan.function(node).seconds, NICS)
    assert made is not None
    return made


def registration(slices: list[int], seconds: list[float | None]) -> Registration:
    plan = planned(slices, seconds, [len(slices)])
    return Registration(NOBODY, plan, template_of(plan), NICS, count(100))


def open_all(opened: Registration) -> None:
    for number in opened.flows:
        opened.five_tuples[number] = FiveTuple(IPv4Address("10.0.0.1"), IPv4Address("10.0.2.1"), 6, number, 9)


def directives(*ranks: tuple[str, int, int, float | None]) -> Directives:
    path = Path(("h0", "h2"), (0,))
    flows = tuple(FlowDirective(group, flow, path, level, 0, 0, rate) for group, flow, level, rate in ranks)
    return Directives(1, None, flows)


def test_each_flow_has_a_number_and_the_connection_that_its_host_has_opened() -> None:
    made = registration([0, 2, 0, 2], [0.1] * 4)
    assert {host: [(each.number, each.host) for each in flows] for host, flows in made.flows_by_host.items()} == {
        0: [(100, 2), (102, 2)],
        2: [(101, 0)],
    }
    assert not made.is_ready
    open_all(made)
    assert made.is_ready
    assert [(group.name, [flow.five_tuple.source_port for flow in group.flows]) for group in made.groups()] == [
        ("west to east", [100, 102]),
        ("east to west", [101]),
    ]


def test_it_is_ready_when_a_run_has_ended_also_where_some_function_has_never_run() -> None:
    made = registration([0, 2], [0.1, None])
    open_all(made)
    assert not made.is_ready
    made.has_run = True
    assert made.is_ready


def test_hosts_are_told_only_what_they_do_not_know_yet() -> None:
    made = registration([0, 2, 0, 2], [0.1] * 4)

    def take(*ranks: tuple[str, int, int, float | None]) -> dict[int, list[tuple[int, int, float | None]]]:
        told = made.take(directives(*ranks))
        return {host: [(each.number, each.level, each.rate_bps) for each in flows] for host, flows in told.items()}

    first = (("west to east", 0, 7, None), ("west to east", 1, 6, 1e6), ("east to west", 0, 7, None))
    assert take(*first) == {0: [(100, 7, None), (102, 6, 1e6)], 2: [(101, 7, None)]}
    assert take(*first) == {}
    assert take(*first[:1], ("west to east", 1, 6, 2e6), ("of another", 0, 3, None)) == {0: [(102, 6, 2e6)]}


def test_what_changes_is_measured_by_what_a_run_takes() -> None:
    made = registration([0, 2], [0.1, 1e-4])
    made.plan.functions[1].seconds = 5e-4
    assert made.change() < 0.01
    made.plan.functions[0].seconds = 0.15
    assert made.change() == pytest.approx(0.5, abs=0.01)
    made.note_told()
    assert made.change() == 0
    assert made.drift() == pytest.approx(0.5, abs=0.01)
    made.adopt(template_of(made.plan))
    assert made.drift() == 0
    made.plan.functions[0].seconds = 0.0
    made.plan.functions[1].seconds = 0.0
    assert made.change() > 1


def test_a_newer_graph_names_flows_as_they_were_registered_also_in_another_order() -> None:
    """Two calls on one island each send to the other island; which is first depends on how long they take."""
    plan = planned([0, 0, 2, 2], [0.1, 0.3, 0.1, 0.1], [4])
    made = Registration(NOBODY, plan, template_of(plan), NICS, count())
    open_all(made)
    before = made.groups()
    plan.functions[0].seconds = 0.4
    newer = template_of(plan)
    graph = made.graph_of(newer)
    assert graph is not None
    assert newer.graph is not None
    assert [type(task) for task in graph.tasks] == [type(task) for task in newer.graph.tasks]
    assert max(task.duration_s for task in graph.tasks if isinstance(task, Computation)) == 0.4
    sent = [(task.flow_group, task.flows) for task in graph.tasks if isinstance(task, Transfer)]
    assert sent == [("west to east", (0,))]
    made.adopt(newer)
    assert [group.flows[0].five_tuple for group in made.groups()] == [group.flows[0].five_tuple for group in before]
