"""The typed methods of the service ``trainyard.operations.v1.Operations``, for both ends of the wire."""

from typing import TypeVar

from google.protobuf.message import Message

from controller.api.operations import operations_pb2 as wire
from hostlib.wire.methods import Method

SERVICE = "trainyard.operations.v1.Operations"

StateT = TypeVar("StateT", bound=Message)


def _listing(name: str, state: type[StateT]) -> Method[wire.ListRequest, StateT]:
    """A method that streams all states of a kind."""
    return Method(name, wire.ListRequest, state, SERVICE)


LIST_JOBS = _listing("ListJobs", wire.JobState)
LIST_FLOWS = _listing("ListFlows", wire.FlowState)
LIST_LEVELS = _listing("ListLevels", wire.LevelState)
LIST_RULES = _listing("ListRules", wire.RuleState)
LIST_SWITCHES = _listing("ListSwitches", wire.SwitchState)
LIST_LINKS = _listing("ListLinks", wire.LinkState)
LIST_CANDIDATES = _listing("ListCandidates", wire.PairState)
LIST_LOADS = _listing("ListLoads", wire.LoadState)
LIST_DROPS = _listing("ListDrops", wire.DropState)
LIST_CONTROLLERS = _listing("ListControllers", wire.ControllerState)
WITHDRAW = Method("Withdraw", wire.WithdrawRequest, wire.Withdrawal, SERVICE)
EXPLAIN = Method("Explain", wire.ExplainRequest, wire.Explanation, SERVICE)
