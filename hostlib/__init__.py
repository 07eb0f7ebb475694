"""What a training job imports to tell the controller what it sends, and to be told how."""

import os

# gRPC reads this when it is first imported. Data loaders fork; its handlers then crash some of the children, and write
# a line for each. Children have no part in our connection, so that no handler is needed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# And this when it is first used. That a connection ends, as with every fail-over, is nothing to write a line of.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.errors import ControllerError, RefusedError, UnreachableError
from hostlib.start_shift import StartShift
from hostlib.types import (
    Directives,
    FiveTuple,
    Flow,
    FlowDecision,
    FlowDirective,
    FlowGroup,
    FlowGroupAssignments,
    GroupInstance,
    Job,
    JobDecision,
    Nic,
    Path,
    PlanInForce,
    Profile,
    Settled,
)

__all__ = [
    "BlockingClient",
    "Client",
    "Connection",
    "ControllerError",
    "Directives",
    "FiveTuple",
    "Flow",
    "FlowDecision",
    "FlowDirective",
    "FlowGroup",
    "FlowGroupAssignments",
    "GroupInstance",
    "Job",
    "JobDecision",
    "Nic",
    "Path",
    "PlanInForce",
    "Profile",
    "RefusedError",
    "Settled",
    "StartShift",
    "UnreachableError",
]
