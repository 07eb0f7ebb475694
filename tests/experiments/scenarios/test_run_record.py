"""The summary of a Plan is the same from a decision in this process and from a controller's response."""

from controller.api.messages import plan_pages
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.run_record import PlanSummary
from hostlib.messages import plan_from_wire
from policies.crux.policy import crux
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario


def test_summaries_of_a_decision_and_of_a_response_are_equal() -> None:
    scenario = load_scenario(SHIPPED_SCENARIOS / "fewer-uplinks.yaml")
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    controller = InProcessController(routing, open_connections(jobs, fabric), crux, Steering.RULE, scenario.seed)
    for job in jobs:
        controller.register(job)
    decision = controller.decide(0.0)
    noted = PlanSummary.of(decision)
    assert noted == PlanSummary.from_controller(plan_from_wire(tuple(plan_pages(decision, fabric))), fabric)
    assert len(noted.jobs) == 5
    assert noted.num_rules
    levels = {job.name: job.level for job in noted.jobs}
    groups = [(job.name, group.name) for job in jobs for group in job.graph.flow_groups]
    assert noted.flow_group_levels == {(job, group): levels[job] for job, group in groups}
