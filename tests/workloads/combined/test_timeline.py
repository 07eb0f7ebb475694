"""Predictions and bounds of iteration times, against runs."""

import random
from typing import Any

import pytest

from experiments.advice.simulation import simulate
from policies.registry import as_policy
from tests.workloads.combined.builders import EXPERTS, MEASURED
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.combined.alternatives import Ways, divisors
from workloads.combined.bounds import QuickBounds
from workloads.combined.expansion import expand_combined
from workloads.combined.timeline import EdgeSwitches, predicted
from workloads.combined_workload import CombinedWorkload
from workloads.placement import place
from workloads.scenario import Scenario


def scenario(uplink_gbps: float = 100.0, gpus: int = 16, **keys: Any) -> Scenario:
    workload = {"type": "combined", "model": MEASURED, "nvlink_gbps": 100.0, "batch": 16} | keys
    job = {"name": "job", "gpus": gpus, "gpus_per_host": 4, "iterations": 2, "workload": workload}
    topology = {
        "kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "nics_per_host": 2, "host_link_gbps": 200,
        "uplink_gbps": uplink_gbps, "gpus_per_host": 4,
    }  # fmt: skip
    return Scenario.model_validate({"name": "case", "topology": topology, "jobs": [job]})


class Case:
    def __init__(self, of: Scenario) -> None:
        (job,), fabric = of.jobs, of.topology.build()
        (self.placement,) = place(of, fabric)
        assert isinstance(job.workload, CombinedWorkload)
        self.template = job.workload
        self.ways = Ways(self.template, len(self.placement.gpus), job.gpus_per_host)
        self.switches = EdgeSwitches.of(fabric, self.placement)
        self.bounds = QuickBounds(self.template, self.placement, self.switches)
        self.routing = Routing(fabric, hash_multipliers(fabric.switches, of.seed))
        self.scenario, self.job = of, job

    def simulated_s(self, workload: CombinedWorkload, policy: str = "ecmp") -> float:
        of = self.scenario, self.job, workload, self.placement, self.routing, as_policy(policy)
        return simulate(*of, 1.0).iteration_s


@pytest.mark.parametrize("model", [MEASURED, EXPERTS])
@pytest.mark.parametrize("uplink_gbps", [25.0, 100.0])
def test_no_way_is_faster_than_its_bounds(model: dict[str, Any], uplink_gbps: float) -> None:
    case = Case(scenario(uplink_gbps, model=model))
    ways = [(layout, way.workload) for layout in case.ways.layouts() for way in case.ways.of_layout(layout)]
    assert len(ways) > 100
    for layout, workload in random.Random(1).sample(ways, 25):
        of_way, simulated_s = case.bounds.of_way(workload), case.simulated_s(workload)
        assert case.bounds.of_layout(layout) <= of_way * (1 + 1e-9)
        assert of_way <= simulated_s * (1 + 1e-9), workload
        predicted_s = predicted(workload, case.placement, case.switches).iteration_s
        assert max(of_way, case.bounds.of_prediction(workload)) <= predicted_s * (1 + 1e-9), workload


@pytest.mark.parametrize("model", [MEASURED, EXPERTS])
@pytest.mark.parametrize("buckets", [1, 3])
def test_no_way_is_predicted_below_its_closer_bound(model: dict[str, Any], buckets: int) -> None:
    case = Case(scenario(12.5, model=model, buckets=buckets, batch=64))
    every = [way.workload for layout in case.ways.layouts() for way in case.ways.of_layout(layout)]
    # All stages of ZeRO, also where the memory of the device would not ask for them.
    drawn = [
        workload.model_copy(update={"zero": zero})
        for workload in random.Random(2).sample(every, 20)
        for zero in (0, 1, 2, 3)
    ]
    for workload in drawn:
        predicted_s = predicted(workload, case.placement, case.switches).iteration_s
        assert case.bounds.of_prediction(workload) <= predicted_s * (1 + 1e-9), workload


def test_the_closer_bound_has_the_exchange_of_gradients() -> None:
    case = Case(scenario(1e-4, gpus=16, tensor=4))
    predicted_s = predicted(case.template, case.placement, case.switches).iteration_s
    assert case.bounds.of_way(case.template) < 0.5 * predicted_s
    assert case.bounds.of_prediction(case.template) > 0.9 * predicted_s


def test_a_job_with_links_to_itself_takes_as_long_as_predicted() -> None:
    case = Case(scenario(gpus=16, tensor=4, pipeline=2, zero=1))
    prediction = predicted(case.template, case.placement, case.switches)
    assert case.simulated_s(case.template) == pytest.approx(prediction.iteration_s, rel=1e-4)
    assert prediction.inside_s["tensor"] > 0
    assert "context" not in prediction.inside_s


@pytest.mark.parametrize(
    "keys",
    [
        {"tensor": 2, "pipeline": 2, "order": "tp-cp-pp-dp"},
        {"tensor": 1, "pipeline": 4, "order": "tp-cp-pp-dp", "schedule": "zero_bubble_v"},
        {"tensor": 2, "pipeline": 3, "order": "tp-cp-pp-dp", "gpus": 12, "buckets": 2},
        {"tensor": 2, "pipeline": 3, "gpus": 12, "zero": 1},
    ],
)
def test_jobs_with_stages_that_share_hosts_are_predicted(keys: dict[str, Any]) -> None:
    case = Case(scenario(**keys))
    prediction = predicted(case.template, case.placement, case.switches)
    assert case.simulated_s(case.template) == pytest.approx(prediction.iteration_s, rel=1e-3)
    flows = sum(len(group.flows) for group in expand_combined(case.template, case.placement).flow_groups)
    assert prediction.num_flows == flows


def test_many_micro_batches_are_predicted_from_few() -> None:
    case = Case(scenario(batch=256, tensor=4, pipeline=4))
    long = case.template.model_copy(update={"batch": 256})
    prediction = predicted(long, case.placement, case.switches)
    assert case.simulated_s(long) == pytest.approx(prediction.iteration_s, rel=1e-3)


def test_what_is_kept_is_not_varied() -> None:
    of = scenario(zero=1, schedule="interleaved", pipeline=2, tensor=2)
    case = Case(of)
    kept = Ways(case.template, 4, 4, ("zero", "schedule", "tensor"))
    ways = [way.workload for layout in kept.layouts() for way in kept.of_layout(layout)]
    assert {way.zero for way in ways} == {1}
    assert {way.tensor for way in ways} == {2}
    assert {way.schedule for way in ways if way.pipeline > 1} == {"interleaved"}
    assert len({way.pipeline for way in ways}) > 1


def test_divisors() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
