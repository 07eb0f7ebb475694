import pytest

from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from trainyard.plans import plan_scenario
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.models import MODELS, ModelName

SCENARIO = load_scenario(SHIPPED_SCENARIOS / "fig19-n4.yaml")
FABRIC = SCENARIO.topology.build()


def _nic(address: int) -> NicReference:
    nic = FABRIC.nic_by_address[address]
    return NicReference(nic.host, nic.index)


def test_flows_have_the_connections_that_the_registry_itself_would_assign() -> None:
    decision = plan_scenario(SCENARIO, FABRIC, "ecmp")
    registry = Registry(FABRIC, lease_s=1.0)
    jobs = {job.name: job for job in decision.snapshot.jobs}
    for specification in SCENARIO.jobs:
        job = jobs[specification.name]
        registry.register_job(JobRequest(job.name, specification.hosts, job.gpus, job.profile), 0.0)
        for group in job.flow_groups:
            flows = tuple(
                FlowRequest(_nic(flow.five_tuple.source_address), _nic(flow.five_tuple.destination_address), 1, 0.0)
                for flow in group.flows
            )
            asked = FlowGroupRequest(group.name, flows)
            _, (registered,) = registry.register_flow_groups(job.name, [asked])
            assert [flow.five_tuple for flow in registered.flows] == [flow.five_tuple for flow in group.flows]


def test_the_seed_of_the_scenario_seeds_the_fabrics_hash() -> None:
    for seed in (1, 2):
        scenario = SCENARIO.model_copy(update={"seed": seed})
        routing = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed))
        for job in plan_scenario(scenario, FABRIC, "ecmp").snapshot.jobs:
            for flow in job.flows:
                assert flow.hashed_path == routing.hashed_path(flow.five_tuple)


def test_jobs_say_what_the_scenario_says() -> None:
    gpt = next(job for job in plan_scenario(SCENARIO, FABRIC, "crux").snapshot.jobs if job.name == "gpt")
    model = MODELS[ModelName.GPT]
    assert (gpt.gpus, gpt.profile.work) == (32, pytest.approx(32 * model.compute_s))
    assert gpt.profile.compute_s == pytest.approx(model.compute_s)
    assert gpt.profile.comm_start == pytest.approx(model.comm_start)
