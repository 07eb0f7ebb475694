"""Trainyard in Python: scenarios, Plans, runs and sweeps, for scripts and notebooks.

::

    import trainyard as ty

    scenario = ty.load_scenario("docs/examples/two-jobs.yaml")
    print(ty.plan(scenario, "crux").to_frame())

    comparison = ty.compare(scenario, ["ecmp", "crux"], on="simulator")
    print(comparison["crux"].gpu_utilisation)
    comparison.plot().savefig("utilisation.png")

Names are imported when they are first used, so that ``import trainyard`` costs nothing. The command ``trainyard`` is
``trainyard.cli``; both do the same by the same code.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.advice.results import Advice, Alternative
    from experiments.scenarios.backend import Backend, RunError
    from experiments.sweeps.summary import Cell, Spread
    from policies.enforcement import Enforcement
    from policies.policy import Policy
    from policies.registry import PolicyError, load_policy, policy_names
    from topologies.specification import (
        ClosSpecification,
        DoubleSidedSpecification,
        DumbbellSpecification,
        FatTreeSpecification,
        GraphSpecification,
        LinkSpecification,
        StarSpecification,
    )
    from topologies.steering import Steering
    from trainyard.advice import advise
    from trainyard.models import load_model, public_model
    from trainyard.plans import PlannedFlow, PlanResult, plan
    from trainyard.runs import Comparison, RunResult, compare, run
    from trainyard.scenarios import build_scenario, load_scenario
    from trainyard.sweeps import SweepResult, sweep
    from workloads.chakra_workload import ChakraWorkload
    from workloads.combined_workload import CombinedWorkload
    from workloads.described.description import ModelDescription
    from workloads.described.devices import Device
    from workloads.events import ScenarioEvent
    from workloads.loading import SHIPPED_SCENARIOS, ScenarioError
    from workloads.scenario import JobSpecification, MeasureWindow, Scenario
    from workloads.workload import (
        ContextParallelWorkload,
        DataParallelWorkload,
        ExpertParallelWorkload,
        FullyShardedWorkload,
        ParameterServerWorkload,
        PhasesWorkload,
        PipelineWorkload,
        ShardedOptimizerWorkload,
        TensorParallelWorkload,
    )

_MODULE_OF = {
    name: module
    for module, names in {
        "experiments.advice.results": ("Advice", "Alternative"),
        "experiments.scenarios.backend": ("Backend", "RunError"),
        "experiments.sweeps.summary": ("Cell", "Spread"),
        "policies.enforcement": ("Enforcement",),
        "policies.policy": ("Policy",),
        "policies.registry": ("PolicyError", "load_policy", "policy_names"),
        "topologies.specification": (
            "ClosSpecification",
            "DoubleSidedSpecification",
            "DumbbellSpecification",
            "FatTreeSpecification",
            "GraphSpecification",
            "LinkSpecification",
            "StarSpecification",
        ),
        "topologies.steering": ("Steering",),
        "trainyard.advice": ("advise",),
        "trainyard.models": ("load_model", "public_model"),
        "trainyard.plans": ("PlanResult", "PlannedFlow", "plan"),
        "trainyard.runs": ("Comparison", "RunResult", "compare", "run"),
        "trainyard.scenarios": ("build_scenario", "load_scenario"),
        "trainyard.sweeps": ("SweepResult", "sweep"),
        "workloads.chakra_workload": ("ChakraWorkload",),
        "workloads.combined_workload": ("CombinedWorkload",),
        "workloads.described.description": ("ModelDescription",),
        "workloads.described.devices": ("Device",),
        "workloads.events": ("ScenarioEvent",),
        "workloads.loading": ("SHIPPED_SCENARIOS", "ScenarioError"),
        "workloads.scenario": ("JobSpecification", "MeasureWindow", "Scenario"),
        "workloads.workload": (
            "ContextParallelWorkload",
            "DataParallelWorkload",
            "ExpertParallelWorkload",
            "FullyShardedWorkload",
            "ParameterServerWorkload",
            "PhasesWorkload",
            "PipelineWorkload",
            "ShardedOptimizerWorkload",
            "TensorParallelWorkload",
        ),
    }.items()
    for name in names
}

__all__ = [
    "SHIPPED_SCENARIOS",
    "Advice",
    "Alternative",
    "Backend",
    "Cell",
    "ChakraWorkload",
    "ClosSpecification",
    "CombinedWorkload",
    "Comparison",
    "ContextParallelWorkload",
    "DataParallelWorkload",
    "Device",
    "DoubleSidedSpecification",
    "DumbbellSpecification",
    "Enforcement",
    "ExpertParallelWorkload",
    "FatTreeSpecification",
    "FullyShardedWorkload",
    "GraphSpecification",
    "JobSpecification",
    "LinkSpecification",
    "MeasureWindow",
    "ModelDescription",
    "ParameterServerWorkload",
    "PhasesWorkload",
    "PipelineWorkload",
    "PlanResult",
    "PlannedFlow",
    "Policy",
    "PolicyError",
    "RunError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "ScenarioEvent",
    "ShardedOptimizerWorkload",
    "Spread",
    "StarSpecification",
    "Steering",
    "SweepResult",
    "TensorParallelWorkload",
    "advise",
    "build_scenario",
    "compare",
    "load_model",
    "load_policy",
    "load_scenario",
    "plan",
    "policy_names",
    "public_model",
    "run",
    "sweep",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
