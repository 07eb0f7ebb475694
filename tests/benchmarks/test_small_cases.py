"""Small cases are the same every time, and no plan is worth more than the best one found."""

from itertools import product
from random import Random

import numpy as np
import pytest

from benchmarks.small_cases import Ratios, SmallCase, Worth, draw_document, figures, is_structured, ratios, weak_orders
from policies.plan import FlowPlan, JobPlan, Plan
from policies.policy import decide
from policies.registry import find_policy
from topologies.fabric import Path


def plan_of(case: SmallCase, paths: list[list[Path]], levels: tuple[int, ...]) -> Plan:
    """A plan that gives flows these paths by job, and jobs these levels."""
    jobs = sorted(zip(case.snapshot.jobs, paths, levels, strict=True), key=lambda each: -each[2])
    flows = {
        flow.key: FlowPlan(path, level, 0)
        for job, of_job, level in jobs
        for flow, path in zip(job.flows, of_job, strict=True)
    }
    of_jobs = (JobPlan(job.name, rank, level, None, None, None, None, "") for rank, (job, _, level) in enumerate(jobs))
    return Plan("fixed", tuple(of_jobs), flows)


def case_of(*workloads: dict[str, object], bottleneck_links: int = 2) -> SmallCase:
    """Jobs between two switches, each on a host of its own at either side."""
    hosts = len(workloads)
    return SmallCase.of(
        {
            "name": "small",
            "topology": {
                **{"kind": "dumbbell", "hosts_per_side": hosts, "bottleneck_gbps": 100, "host_link_gbps": 200},
                "bottleneck_links": bottleneck_links,
            },
            "jobs": [
                {"name": f"j{number}", "hosts": [f"h{number}", f"h{hosts + number}"], "gpus_per_host": 4}
                | {"iterations": 1, "workload": workload}
                for number, workload in enumerate(workloads)
            ],
        }
    )


def phases(compute_s: float, gigabytes: int, comm_start: float = 0.5) -> dict[str, object]:
    keys = {"compute_s": compute_s, "comm_start": comm_start, "bytes": gigabytes * 1_000_000_000}
    return {"type": "phases", "pattern": "pairs", **keys}


def test_cases_are_drawn_by_their_numbers_alone() -> None:
    one, other = (SmallCase.draw(7) for _ in range(2))
    assert one.window == other.window
    assert [job.specification for job in one.modelled.jobs] == [job.specification for job in other.modelled.jobs]
    # Whoever changes the drawing changes every figure that was measured with it.
    assert [SmallCase.draw(number).num_plans for number in range(8)] == [416, 48, 416, 3328, 192, 3328, 416, 48]


def test_every_other_case_has_structured_jobs() -> None:
    for number in range(6):
        jobs = SmallCase.draw(number).modelled.jobs
        assert 2 <= len(jobs) <= 3
        assert {job.specification.workload.type != "phases" for job in jobs} == {is_structured(number)}


def test_all_kinds_of_topology_and_workload_are_drawn() -> None:
    chance = Random(1)
    drawn = [draw_document(chance, is_structured=bool(number % 2)) for number in range(60)]
    assert {document["topology"]["kind"] for document in drawn} == {"dumbbell", "clos", "graph"}
    types = {job["workload"]["type"] for document in drawn for job in document["jobs"]}
    assert types == {"phases", "dp", "fsdp", "moe", "pp", "tp", "zero"}


def test_controllers_know_the_task_graphs() -> None:
    case = SmallCase.draw(1)
    assert [job.task_graph for job in case.snapshot.jobs] == [job.reported_graph for job in case.modelled.jobs]


def test_weak_orders_are_all_orders_with_ties() -> None:
    assert weak_orders(1) == [(0,)]
    assert set(weak_orders(2)) == {(0, 0), (0, 1), (1, 0)}
    assert len(weak_orders(3)) == 13


def test_two_jobs_on_two_links_do_not_meet() -> None:
    case = case_of(phases(0.5, 5), phases(0.4, 4))
    best = case.best()
    first, second = map(set, best.paths)
    assert first.isdisjoint(second)
    assert best.worth.per_second == pytest.approx(8 * 0.5 / 0.65 + 8 * 0.4 / 0.52, rel=1e-4)
    assert case.ratio(plan_of(case, best.paths, best.levels), best) == pytest.approx(1.0)


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.slow), 14, 22])
def test_no_plan_is_worth_more_than_the_best_one(number: int) -> None:
    """All plans are played whole here, and jobs that share no link together."""
    case = SmallCase.draw(number)
    candidates, chooser_of = case.choosers
    worths = []
    for choice, levels in product(product(*candidates), weak_orders(len(chooser_of))):
        paths = [[choice[chooser] for chooser in of_job] for of_job in chooser_of]
        worths.append(case.worth(plan_of(case, paths, levels)))
    assert len(worths) == case.num_plans
    best = case.best()
    assert best.worth.minus_starved == max(worths).minus_starved
    assert best.worth.per_second == pytest.approx(max(worths).per_second, rel=1e-6)
    assert case.worth(plan_of(case, best.paths, best.levels)).per_second == pytest.approx(best.worth.per_second)


def test_a_plan_that_starves_a_job_has_a_ratio_of_0() -> None:
    case = case_of(phases(0.3, 5, 0.0), phases(0.5, 5), bottleneck_links=1)
    best = case.best()
    assert best.worth.minus_starved == 0
    starving = plan_of(case, best.paths, (1, 0))
    assert case.worth(starving).minus_starved == -1
    assert case.ratio(starving, best) == 0


def test_where_every_plan_starves_a_job_the_worth_decides() -> None:
    assert Worth(-1, 3.0) > Worth(-1, 2.0) > Worth(-2, 9.0)


def test_ratios_are_those_of_the_policies() -> None:
    case = SmallCase.draw(9)
    best = case.best()
    found = ratios("sincronia", 9)
    assert found.num_plans == case.num_plans
    assert set(found.by_policy) == {"ecmp", "crux", "sincronia"}
    for name, ratio in found.by_policy.items():
        worth = case.worth(decide(find_policy(name), case.snapshot))
        assert ratio == pytest.approx(worth.per_second / best.worth.per_second)


def test_figures_are_taken_over_the_cases() -> None:
    own = [1.0, 0.9, 0.5, 1.1]
    found = {
        number: Ratios({"ecmp": 0.8, "crux": 0.7 if number == 2 else 0.9, "mine": ratio}, 10)
        for number, ratio in enumerate(own)
    }
    measured = figures(found, "mine")
    assert measured["small_ratio_mean"] == pytest.approx(0.875)
    assert measured["small_ratio_p10"] == pytest.approx(float(np.quantile(own, 0.1)))
    assert (measured["small_ratio_worst"], measured["small_worst_case"]) == (0.5, 2)
    assert measured["small_ratio_mean_structured"] == pytest.approx(1.0)
    assert measured["small_crux_below_ecmp"] == 0.25
    assert measured["small_starving"] == {"ecmp": 0, "crux": 0, "mine": 0}
