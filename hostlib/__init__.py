"""What a training job imports to tell the controller what it sends, and to be told how."""

import os

# gRPC reads this when it is first imported. Data loaders fork; its handlers then crash some of the children, and write
# a line for each. Children have no part in our connection, so that no handler is needed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# And this when it is first used. That a connection ends, as with every fail-over, is nothing to write a line of.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.errors import ControllerError, RefusalReason, RefusedError, UnreachableError
from hostlib.start_shift import StartShift
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
    Path,
    Profile,
)

__all__ = [
    "BlockingClient",
    "Client",
    "ControllerError",
    "Directives",
    "FiveTuple",
    "Flow",
    "FlowDirective",
    "FlowGroup",
    "FlowGroupAssignments",
    "GroupInstance",
    "Job",
    "Nic",
    "Path",
    "Profile",
    "RefusalReason",
    "RefusedError",
    "StartShift",
    "UnreachableError",
]
