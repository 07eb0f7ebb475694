import pytest

from topologies.routing import Routing
from workloads.alone import run_alone
from workloads.expansion import expand
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.models import MODELS, ModelName
from workloads.parallelism.data_parallel import GROUP
from workloads.placement import Placement
from workloads.scenario import Scenario
from workloads.workload import DataParallelWorkload


@pytest.mark.parametrize(("hosts", "share"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_a_ring_reduces_twice_what_a_host_does_not_hold(hosts: int, share: float) -> None:
    names = [f"h{number}" for number in range(hosts)]
    workload = DataParallelWorkload(type="dp", model=ModelName.BERT)
    graph = expand(workload, Placement(dict.fromkeys(names, (0,)), dict.fromkeys(names, (0,))))
    (group,) = graph.flow_groups
    assert group.name == GROUP
    assert {flow.size_bytes for flow in group.flows} == {share * MODELS[ModelName.BERT].gradient_bytes}
    assert [flow.destination_host for flow in group.flows] == [*names[1:], names[0]]


def alone(gpus: int, gpus_per_host: int, model: str) -> tuple[TrainingJob, float]:
    testbed = load_scenario(SHIPPED_SCENARIOS / "fig20.yaml").topology
    job = {"name": "a", "gpus": gpus, "gpus_per_host": gpus_per_host, "placement": "spread", "iterations": 1}
    job["workload"] = {"type": "dp", "model": model}
    scenario = Scenario.model_validate({"name": "a", "topology": testbed, "jobs": [job]})
    fabric = testbed.build()
    (one,) = training_jobs(scenario, fabric)
    return one, run_alone(one, Routing(fabric, dict.fromkeys(fabric.switches, 1))).iteration_time_s


@pytest.mark.parametrize(
    ("gpus", "gpus_per_host", "model", "utilisation"),
    [(64, 8, "gpt", 1.0), (32, 8, "gpt", 1.0), (8, 4, "bert", 0.54), (8, 4, "resnet", 1.0)],
)
def test_alone_the_testbeds_models_behave_as_in_the_paper(
    gpus: int, gpus_per_host: int, model: str, utilisation: float
) -> None:
    job, iteration_s = alone(gpus, gpus_per_host, model)
    assert job.computing_gpu_seconds / job.gpus / iteration_s == pytest.approx(utilisation, abs=0.005)
    if model == "gpt":
        assert iteration_s == pytest.approx(1.53)
