"""Host library: a training job registers its jobs and flow groups with the controller and receives directives.

Use ``Client`` under asyncio, ``BlockingClient`` from threads. Both keep working, and keep trying, while no controller
answers: a job never waits for its network.
"""

import os

# Read when gRPC is first imported. Its fork handlers crash some of the children that data loaders fork, and log a line
# for each. Children never use our connection, so no handler is needed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Read when gRPC is first used. Otherwise it logs every lost connection, and every fail-over loses one.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.credentials import Credentials
from hostlib.errors import ControllerError, RefusalReason, RefusedError, UnreachableError
from hostlib.start_shift import StartShift
from hostlib.task_graph import Computation, TaskGraph, Transfer
from hostlib.types import (
    Directives,
    FiveTuple,
    Flow,
    FlowDirective,
    FlowGroup,
    FlowGroupAssignments,
    GroupInstance,
    Job,
    Nic,
    NicPair,
    Path,
    PathLoad,
    Profile,
    Sent,
)

__all__ = [
    "BlockingClient",
    "Client",
    "Computation",
    "ControllerError",
    "Credentials",
    "Directives",
    "FiveTuple",
    "Flow",
    "FlowDirective",
    "FlowGroup",
    "FlowGroupAssignments",
    "GroupInstance",
    "Job",
    "Nic",
    "NicPair",
    "Path",
    "PathLoad",
    "Profile",
    "RefusalReason",
    "RefusedError",
    "Sent",
    "StartShift",
    "TaskGraph",
    "Transfer",
    "UnreachableError",
]
