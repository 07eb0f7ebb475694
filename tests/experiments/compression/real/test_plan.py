"""Plans and results come back from JSON as they were."""

from experiments.compression.real.plan import RankPlan, Task, TaskResult, results_from_json, results_to_json
from hostlib.compression.control.cost import Linear, MeasuredCosts


def test_a_plan_comes_back() -> None:
    plan = RankPlan("VGG16", 25.0, 4.8, (Task("AllReduce", 3, 1), Task("budget", 16, 4)), "results.json")
    assert RankPlan.from_json(plan.to_json()) == plan


def test_results_come_back() -> None:
    costs = MeasuredCosts(Linear(1e-3, 2e-9, 3e-9), Linear(4e-3), hop_s=2e-3, quantise=Linear(5e-3, 6e-9))
    results = [TaskResult("AllReduce", (1.5, 1.25), 0.5, None, 1.0), TaskResult("budget", (0.25,), 0.4, costs, 0.3)]
    assert results_from_json(results_to_json(results)) == results
