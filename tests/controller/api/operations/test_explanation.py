"""Explanations compared with values worked out by hand on the small Clos."""

from dataclasses import replace

import pytest

from controller.api.errors import NothingToExplainError
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.explanation import Explainer, find_flow
from controller.api.operations.parts import PART_BYTES, joined, parts
from policies.task_graph import Computation, TaskGraph, Transfer
from tests.controller.api.operations.builders import SENT_BYTES, PlannedController, planned_controller
from tests.controller.api.operations.many_jobs import decision_for_many
from tests.controller.api.operations.plain_explanation import PlainExplainer

RATE_BPS = 100e9
TRANSFER_S = SENT_BYTES * 8 / RATE_BPS


@pytest.fixture
def controller() -> PlannedController:
    return planned_controller()


@pytest.fixture
def explainer(controller: PlannedController) -> Explainer:
    return Explainer(controller.decision, controller.fabric)


def test_a_job_is_explained_by_its_bottleneck_and_neighbours(
    explainer: Explainer, controller: PlannedController
) -> None:
    resnet = next(job for job in controller.registry.jobs if job.request.name == "resnet")
    job = joined(parts(explainer.explain_job(resnet, 7.0, wire.ProfileState(), {}, 0.0))).job
    assert (job.state.rank, job.jobs, job.state.lease_s) == (2, 3, 7.0)
    assert job.communication_s == pytest.approx(TRANSFER_S)
    assert job.alone_iteration_s == 1.0
    # It shares its hosts' links, which the ToRs keep in order downwards, with both other jobs.
    assert [(other.name, other.rank) for other in job.neighbours] == [("gpt", 0), ("bert", 1)]
    assert {other.busiest.destination for other in job.neighbours} == {"h1", "h2"}
    for other in job.neighbours:
        assert other.busiest.planned_utilisation == pytest.approx(2 * TRANSFER_S)
        assert other.busiest.jobs == [other.name, "resnet"]
        assert other.level > job.state.level
    # The hosts that it sends from are those that others send from too.
    assert [(other.name, other.busiest.source) for other in job.host_neighbours] == [("gpt", "h2"), ("bert", "h1")]
    assert job.reason == controller.decision.plan.jobs[2].reason


def test_an_explanation_counts_the_tasks_that_the_job_has_told(controller: PlannedController) -> None:
    decision = controller.decision
    gpt = next(job for job in controller.registry.jobs if job.request.name == "gpt")
    graph = TaskGraph((Computation(1.0), Transfer((0, 1), (0,))), is_guessed=True)
    jobs = tuple(replace(job, task_graph=graph) if job.name == "gpt" else job for job in decision.snapshot.jobs)
    told = replace(decision, snapshot=replace(decision.snapshot, jobs=jobs))
    for explained, tasks in ((told, 2), (decision, None)):
        job = Explainer(explained, controller.fabric).explain_job(gpt, 1.0, wire.ProfileState(), {}, 0.0).job
        assert (job.tasks if job.HasField("tasks") else None, job.is_guessed) == (tasks, tasks is not None)


def test_jobs_that_share_no_link_are_no_neighbours(explainer: Explainer, controller: PlannedController) -> None:
    gpt = next(job for job in controller.registry.jobs if job.request.name == "gpt")
    assert [other.name for other in explainer.explain_job(gpt, 1.0, wire.ProfileState(), {}, 0.0).job.neighbours] == [
        "resnet"
    ]


def test_a_flow_is_explained_by_its_candidates_and_rules(explainer: Explainer, controller: PlannedController) -> None:
    for job in controller.decision.snapshot.jobs:
        for flow in job.flows:
            explained = explainer.explain_flow(flow, 0.0).flow
            chosen = controller.decision.plan.flows[flow.key].path
            assert chosen is not None
            assert len(explained.candidates) == len(flow.candidates) == 8
            nodes = list(controller.fabric.nodes_of(chosen))
            assert [c.path.nodes for c in explained.candidates if c.chosen] == [nodes]
            assert sum(c.hashed for c in explained.candidates) == 1
            assert [link.source for link in explained.links] == nodes[:-1]
            wanted = [
                (switch, rule.next_link is not None, rule.level)
                for switch in nodes
                for rule in controller.decision.rules.get(switch, ())
                if rule.five_tuple == flow.five_tuple
            ]
            found = [
                (rule.switch, rule.HasField("port"), rule.level if rule.HasField("level") else None)
                for rule in explained.rules
            ]
            assert found == wanted


def test_the_utilisation_by_others_leaves_out_the_flow_itself(
    explainer: Explainer, controller: PlannedController
) -> None:
    flow = find_flow(controller.decision, "gpt/ring/0")
    candidates = explainer.explain_flow(flow, 0.0).flow.candidates
    # Every way ends on the link to h2, where resnet's flow comes too.
    assert [c.others_utilisation for c in candidates] == pytest.approx([TRANSFER_S] * 8)
    alone = find_flow(controller.decision, "gpt/ring/1")
    assert (
        min(c.others_utilisation for c in explainer.explain_flow(alone, 0.0).flow.candidates if c.chosen) <= TRANSFER_S
    )


def test_candidates_show_foreign_traffic_on_their_paths(controller: PlannedController) -> None:
    decision = controller.decision
    flow = find_flow(decision, "gpt/ring/0")
    full = flow.candidates[0][1]
    snapshot = replace(decision.snapshot, foreign_loads_bps={full: 0.9 * RATE_BPS})
    explained = Explainer(replace(decision, snapshot=snapshot), controller.fabric).explain_flow(flow, 0.0).flow
    before = Explainer(decision, controller.fabric).explain_flow(flow, 0.0).flow
    for path, candidate, other in zip(flow.candidates, explained.candidates, before.candidates, strict=True):
        assert candidate.foreign_utilisation == (0.9 if full in path else 0.0)
        assert (candidate.others_utilisation >= 0.9) == (full in path)
        assert other.foreign_utilisation == 0.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody", "no job 'nobody'; it has bert, gpt, resnet"),
        ("gpt/ring/2", "no flow 'gpt/ring/2'; 'gpt' has gpt/ring/0, gpt/ring/1"),
        ("gpt/star/0", "no flow 'gpt/star/0'"),
        ("j" * 100_000, r"no job 'j{256}'… \(100,000 characters\); it has"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(
    controller: PlannedController, name: str, message: str
) -> None:
    with pytest.raises(NothingToExplainError, match=message):
        find_flow(controller.decision, name)


@pytest.mark.parametrize("seed", range(3))
def test_explanations_say_what_pairs_of_jobs_say_one_by_one(seed: int) -> None:
    registry, decision, fabric = decision_for_many(40, seed)
    explainer, plain = Explainer(decision, fabric), PlainExplainer(decision, fabric)
    for job in registry.jobs:
        explained = joined(parts(explainer.explain_job(job, 1.0, wire.ProfileState(), {}, 0.0)))
        assert explained == plain.explain_job(job, 1.0, wire.ProfileState())
    for flow in decision.snapshot.jobs[0].flows:
        assert joined(parts(explainer.explain_flow(flow, 0.0))) == plain.explain_flow(flow)


def test_the_parts_of_a_long_explanation_are_short() -> None:
    names = [f"{'n' * 250}-{number}" for number in range(20_000)]
    long = wire.Explanation(jobs=names, flow=wire.FlowExplanation(links=[wire.LinkUse(places=range(20_000))]))
    found = list(parts(long))
    assert len(found) > 4
    assert max(part.ByteSize() for part in found) < PART_BYTES + 100
    assert joined(found).flow.links[0].jobs == names


def test_a_link_that_many_meet_on_is_sent_once() -> None:
    registry, decision, fabric = decision_for_many(300, seed=1)
    explanation = Explainer(decision, fabric).explain_job(registry.jobs[0], 1.0, wire.ProfileState(), {}, 0.0)
    assert len(explanation.job.neighbours) > 2 * len(explanation.links)
    assert not any(neighbour.HasField("busiest") for neighbour in explanation.job.neighbours)
