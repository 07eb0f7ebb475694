"""Policies: functions from the state of a cluster (Snapshot) to paths, levels and an order for every flow (Plan).

This package exports what one needs to write a policy; docs/write-a-policy.md shows how::

    from policies import decide, find_policy

    plan = decide(find_policy("crux"), snapshot)

It imports each name at its first use, so that listing policies (``policy_names``) does not import NumPy or SciPy.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from policies.coflows import JobCoflow, job_coflows
    from policies.enforcement import Allocator, Cadence, RateAllocator, RateControl, Tiers
    from policies.flows import Flow, FlowGroup, FlowKey
    from policies.job import Job, Profile
    from policies.memory_codec import EncodedMemory, JsonMemoryCodec, MemoryCodec
    from policies.open_groups import GroupOrder, OpenFlows, OpenGroups
    from policies.plan import FlowPlan, JobPlan, ModelledWorth, Plan
    from policies.plan_builder import JobDecision, equal_classes, own_levels, plan_in_order, plan_of
    from policies.policy import Policy, decide
    from policies.registry import PolicyError, find_policy, load_policy, policy_names
    from policies.snapshot import Links, LinkState, OpenGroup, OrderKeeper, Snapshot

_MODULES = {
    "Allocator": "enforcement",
    "Cadence": "enforcement",
    "EncodedMemory": "memory_codec",
    "Flow": "flows",
    "FlowGroup": "flows",
    "FlowKey": "flows",
    "FlowPlan": "plan",
    "GroupOrder": "open_groups",
    "Job": "job",
    "JobCoflow": "coflows",
    "JobDecision": "plan_builder",
    "JobPlan": "plan",
    "JsonMemoryCodec": "memory_codec",
    "LinkState": "snapshot",
    "Links": "snapshot",
    "MemoryCodec": "memory_codec",
    "ModelledWorth": "plan",
    "OpenFlows": "open_groups",
    "OpenGroup": "snapshot",
    "OpenGroups": "open_groups",
    "OrderKeeper": "snapshot",
    "Plan": "plan",
    "Policy": "policy",
    "PolicyError": "registry",
    "Profile": "job",
    "RateAllocator": "enforcement",
    "RateControl": "enforcement",
    "Snapshot": "snapshot",
    "Tiers": "enforcement",
    "decide": "policy",
    "equal_classes": "plan_builder",
    "find_policy": "registry",
    "job_coflows": "coflows",
    "load_policy": "registry",
    "own_levels": "plan_builder",
    "plan_in_order": "plan_builder",
    "plan_of": "plan_builder",
    "policy_names": "registry",
}

__all__ = [
    "Allocator",
    "Cadence",
    "EncodedMemory",
    "Flow",
    "FlowGroup",
    "FlowKey",
    "FlowPlan",
    "GroupOrder",
    "Job",
    "JobCoflow",
    "JobDecision",
    "JobPlan",
    "JsonMemoryCodec",
    "LinkState",
    "Links",
    "MemoryCodec",
    "ModelledWorth",
    "OpenFlows",
    "OpenGroup",
    "OpenGroups",
    "OrderKeeper",
    "Plan",
    "Policy",
    "PolicyError",
    "Profile",
    "RateAllocator",
    "RateControl",
    "Snapshot",
    "Tiers",
    "decide",
    "equal_classes",
    "find_policy",
    "job_coflows",
    "load_policy",
    "own_levels",
    "plan_in_order",
    "plan_of",
    "policy_names",
]


def __getattr__(name: str) -> _typing.Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
