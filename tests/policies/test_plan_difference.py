from policies.flows import FlowKey
from policies.plan import FlowPlan, JobPlan, Plan
from policies.plan_difference import LevelChange, MovedFlow, PlanDifference, plan_difference


def plan_of(flows: dict[FlowKey, FlowPlan]) -> Plan:
    names = dict.fromkeys(key.job for key in flows)
    jobs = tuple(JobPlan(name, rank, 0, None, None, None, None, "") for rank, name in enumerate(names))
    return Plan("any", jobs, flows)


def test_a_difference_is_levels_by_group_paths_by_flow_and_who_came_and_went() -> None:
    stays, moves, leaves, comes = (FlowKey(job, "g", flow) for job, flow in (("a", 0), ("a", 1), ("b", 0), ("c", 0)))
    before = plan_of({leaves: FlowPlan((1,), 7, 0), moves: FlowPlan(None, 6, 1), stays: FlowPlan((2,), 6, 1)})
    after = plan_of({comes: FlowPlan((1,), 7, 0), moves: FlowPlan((3,), 5, 2), stays: FlowPlan((2,), 5, 2)})
    difference = plan_difference(before, after)
    assert (difference.came, difference.went) == (("c",), ("b",))
    assert difference.levels == (LevelChange("a", "g", 6, 5),)
    assert difference.moved == (MovedFlow(moves, None, (3,)),)


def test_another_order_at_the_host_alone_is_no_difference() -> None:
    key = FlowKey("a", "g", 0)
    difference = plan_difference(plan_of({key: FlowPlan((1,), 7, 0)}), plan_of({key: FlowPlan((1,), 7, 3)}))
    assert difference == PlanDifference((), (), (), ())
