"""Components play as all jobs together do, none twice, and a search that gives up early finds plans as good."""

from random import Random

import numpy as np
import pytest

from benchmarks.plan_search import PlanSearch, policy_of
from benchmarks.played_components import PlayedComponents
from experiments.scenarios.modelled import ModelledScenario
from policies.arrays import IntArray
from policies.flows import FlowKey
from policies.plan import FlowPlan, JobPlan, Plan
from policies.policy import decide
from policies.registry import find_policy, policy_names
from topologies.fabric import Path
from workloads.measures import Window
from workloads.scenario import Scenario

WINDOW = Window(2.0, 10.0)


@pytest.fixture(scope="module")
def modelled() -> ModelledScenario:
    """Four jobs of several flow groups, each between the two ToRs, which two aggregation switches connect."""
    workloads = [
        {"type": "fsdp", "model": "bert", "layer_groups": 2},
        {"type": "phases", "compute_s": 0.4, "comm_start": 0.3, "bytes": 4_000_000_000, "pattern": "ring"},
        {"type": "moe", "model": "resnet", "layers": 1},
        {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 2_000_000_000, "pattern": "pairs"},
    ]
    return ModelledScenario.of(
        Scenario.model_validate(
            {
                "name": "searched",
                "topology": {
                    **{"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 4, "uplink_gbps": 100},
                    **{"gpus_per_host": 8, "host_link_gbps": 200},
                },
                "jobs": [
                    {"name": f"j{number}", "hosts": [f"h{number}", f"h{4 + number}"], "gpus_per_host": 8}
                    | {"iterations": 1, "workload": workload}
                    for number, workload in enumerate(workloads)
                ],
            }
        )
    )


def drawn_paths(modelled: ModelledScenario, chance: Random) -> list[list[Path]]:
    """Paths that each flow, or each job, chooses by chance."""
    is_by_job = chance.random() < 0.5
    drawn = []
    for job in modelled.played:
        of_job = chance.randrange(2)
        drawn.append([flow.candidates[of_job if is_by_job else chance.randrange(2)] for flow in job.flows])
    return drawn


def drawn_levels(modelled: ModelledScenario, chance: Random) -> IntArray:
    return np.array([chance.randrange(8) for job in modelled.played for _ in job.flow_groups])


def plan_of(modelled: ModelledScenario, paths: list[list[Path]], levels: IntArray) -> Plan:
    of_groups = iter(levels.tolist())
    flows: dict[FlowKey, FlowPlan] = {}
    for job, of_job in zip(modelled.snapshot.jobs, paths, strict=True):
        of_flows = iter(of_job)
        for group in job.flow_groups:
            level = next(of_groups)
            flows |= {flow.key: FlowPlan(next(of_flows), level, 0) for flow in group.flows}
    jobs = (JobPlan(job.name, n, 0, None, None, None, None, "") for n, job in enumerate(modelled.snapshot.jobs))
    return Plan("drawn", tuple(jobs), flows)


def test_components_play_as_all_jobs_together(modelled: ModelledScenario) -> None:
    chance = Random(1)
    played = PlayedComponents(modelled, WINDOW)
    num_components = set()
    for _ in range(20):
        paths, levels = drawn_paths(modelled, chance), drawn_levels(modelled, chance)
        expected = modelled.iterations(plan_of(modelled, paths, levels), WINDOW)
        parts = played.split(paths)
        num_components.add(len(parts))
        found, early = np.zeros(4), np.zeros(4)
        for part in parts:
            order = part.order(levels, np.zeros_like(levels))
            early[list(part.jobs)] = played.early(part, order)
            found[list(part.jobs)] = played.whole(part, order)
            # Again, as nothing else is known of them then: from time 0, without the stop on the way.
            other = PlayedComponents(modelled, WINDOW)
            (same,) = (each for each in other.split(paths) if each.jobs == part.jobs)
            assert other.whole(same, order).tolist() == played.whole(part, order).tolist()
        assert found == pytest.approx(expected, rel=1e-6)
        early_window = played.early_window
        assert early == pytest.approx(modelled.iterations(plan_of(modelled, paths, levels), early_window), rel=1e-6)
    assert len(num_components) > 1


def test_paths_that_differ_by_their_links_alone_are_one_component(modelled: ModelledScenario) -> None:
    played = PlayedComponents(modelled, WINDOW)
    first, second = ([[flow.candidates[number] for flow in job.flows] for job in modelled.played] for number in (0, 1))
    (one,), (other,) = played.split(first), played.split(second)
    assert one is other


def test_levels_count_by_their_order_alone(modelled: ModelledScenario) -> None:
    paths = [[flow.candidates[0] for flow in job.flows] for job in modelled.played]
    (part,) = PlayedComponents(modelled, WINDOW).split(paths)
    levels = np.arange(sum(len(job.flow_groups) for job in modelled.played))
    none = np.zeros_like(levels)
    assert (part.order(levels, none) == part.order(2 * levels, none)).all()
    assert not (part.order(levels, none) == part.order(none, none)).all()


def test_nothing_is_played_twice(modelled: ModelledScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(2)
    played = PlayedComponents(modelled, WINDOW)
    paths, levels = drawn_paths(modelled, chance), drawn_levels(modelled, chance)
    parts = [(part, part.order(levels, levels)) for part in played.split(paths)]
    first = [played.whole(*part).tolist() for part in parts]
    monkeypatch.setattr("policies.model.playing_jobs.PlayingJobs.run", None)
    assert [played.whole(part, part.order(levels, levels)).tolist() for part in played.split(paths)] == first


def test_a_search_finds_no_worse_plan_than_the_policies(modelled: ModelledScenario) -> None:
    """A policy's plan is taken with one level for each flow group, and the order at hosts that levels give."""
    search = PlanSearch(modelled, WINDOW, seed=1)
    best = search.best(60)
    plans = [decide(find_policy(name), modelled.snapshot) for name in policy_names()]
    started = max(modelled.gpu_utilisation(plan, WINDOW) for plan in plans)
    assert modelled.gpu_utilisation(best, WINDOW) >= started * (1 - 1e-6)


def test_early_ends_lose_nothing_here(modelled: ModelledScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = PlanSearch(modelled, WINDOW, seed=1).best(80)
    monkeypatch.setattr("benchmarks.plan_search._LEAST_EARLY", 0.0)
    whole = PlanSearch(modelled, WINDOW, seed=1).best(80)
    assert modelled.gpu_utilisation(ended, WINDOW) == pytest.approx(modelled.gpu_utilisation(whole, WINDOW), rel=0.01)


def test_a_plan_that_was_found_is_a_policy(modelled: ModelledScenario) -> None:
    plan = PlanSearch(modelled, WINDOW, seed=1).best(3)
    assert decide(policy_of(plan), modelled.snapshot).flows == plan.flows
