"""What a training job imports to tell the controller what it sends, and to be told how."""

from hostlib.client import Client
from hostlib.errors import ControllerError, RefusedError, UnreachableError
from hostlib.types import (
    Directives,
    FiveTuple,
    Flow,
    FlowDecision,
    FlowDirective,
    FlowGroup,
    FlowGroupAssignments,
    Job,
    JobDecision,
    Nic,
    Path,
    PlanInForce,
    Profile,
    Settled,
)

__all__ = [
    "Client",
    "ControllerError",
    "Directives",
    "FiveTuple",
    "Flow",
    "FlowDecision",
    "FlowDirective",
    "FlowGroup",
    "FlowGroupAssignments",
    "Job",
    "JobDecision",
    "Nic",
    "Path",
    "PlanInForce",
    "Profile",
    "RefusedError",
    "Settled",
    "UnreachableError",
]
