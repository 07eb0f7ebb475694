from itertools import count
from typing import Any

import pytest

from hostlib import Computation, Directives, FlowDirective, Nic, Path, Transfer
from runtime.messages import FlowRank
from runtime.network.transfers import Template, template
from runtime.server.registrations import NetworkEnd, Registration
from tests.runtime.server.test_plans import planned

NICS = {0: Nic("h0"), 2: Nic("h2")}
ENDS = {number: NetworkEnd(nic, 40_000 + number) for number, nic in NICS.items()}
NOBODY: Any = None


def template_of(plan: Any) -> Template:
    made = template(plan.lowered, lambda node: plan.function(node).seconds, NICS)
    assert made is not None
    return made


def registration(slices: list[int], seconds: list[float | None]) -> Registration:
    plan = planned(slices, seconds, [len(slices)])
    return Registration(NOBODY, plan, template_of(plan), ENDS, NOBODY, count(100))


def directives(*ranks: tuple[str, int, int, float | None, int]) -> Directives:
    path = Path(("h0", "h2"), (0,))
    flows = tuple(FlowDirective(group, flow, path, level, 0, port, rate) for group, flow, level, rate, port in ranks)
    return Directives(1, None, flows)


def test_each_flow_has_a_number_and_leads_to_where_its_host_listens() -> None:
    made = registration([0, 2, 0, 2], [0.1] * 4)
    assert {host: [(each.number, each.host) for each in flows] for host, flows in made.flows_by_host.items()} == {
        0: [(100, 2), (102, 2)],
        2: [(101, 0)],
    }
    assert made.is_ready
    assert [(group.name, [flow.tcp_port for flow in group.flows]) for group in made.groups()] == [
        ("west to east", [40_002, 40_002]),
        ("east to west", [40_000]),
    ]


def test_it_is_ready_when_a_run_has_ended_also_where_some_function_has_never_run() -> None:
    made = registration([0, 2], [0.1, None])
    assert not made.is_ready
    made.has_run = True
    assert made.is_ready


def test_hosts_are_told_only_what_they_do_not_know_yet() -> None:
    made = registration([0, 2, 0, 2], [0.1] * 4)

    def take(*ranks: tuple[str, int, int, float | None, int]) -> dict[int, list[FlowRank]]:
        return made.take(directives(*ranks))

    first = (("west to east", 0, 7, None, 1), ("west to east", 1, 6, 1e6, 2), ("east to west", 0, 7, None, 3))
    assert take(*first) == {0: [FlowRank(100, 7, None, 1), FlowRank(102, 6, 1e6, 2)], 2: [FlowRank(101, 7, None, 3)]}
    assert take(*first) == {}
    other = ("of another", 0, 3, None, 4)
    assert take(*first[:1], ("west to east", 1, 6, 2e6, 2), other) == {0: [FlowRank(102, 6, 2e6, 2)]}
    assert take(*first[:1], ("west to east", 1, 6, 2e6, 5)) == {0: [FlowRank(102, 6, 2e6, 5)]}


def test_what_changes_is_measured_by_what_a_run_takes() -> None:
    made = registration([0, 2], [0.1, 1e-4])
    made.plan.functions[1].seconds = 5e-4
    assert made.change() < 0.01
    made.plan.functions[0].seconds = 0.15
    assert made.change() == pytest.approx(0.5, abs=0.01)
    made.note_told()
    assert made.change() == 0
    assert made.drift() == pytest.approx(0.45, abs=0.01)
    made.adopt(template_of(made.plan))
    assert made.drift() == 0
    made.plan.functions[0].seconds = 0.0
    made.plan.functions[1].seconds = 0.0
    assert made.change() > 1


def test_a_short_run_does_not_drift_because_others_ran_in_between() -> None:
    made = registration([0, 2], [1e-5, 1e-5])
    made.plan.functions[0].seconds = 4e-3
    assert made.change() > 1
    assert made.drift() == 0
    made.plan.functions[0].seconds = 8e-3
    assert made.drift() > 1


def test_a_newer_graph_names_flows_as_they_were_registered_also_in_another_order() -> None:
    """Two calls on one island each send to the other island; which is first depends on how long they take."""
    plan = planned([0, 0, 2, 2], [0.1, 0.3, 0.1, 0.1], [4])
    made = Registration(NOBODY, plan, template_of(plan), ENDS, NOBODY, count())
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
    told = made.take(directives(("west to east", 0, 7, None, 1)))
    assert [rank.number for rank in told[0]] == [next(iter(made.flows))]
