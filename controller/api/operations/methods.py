"""The typed methods of the service ``trainyard.operations.v1.Operations``, for both ends of the wire."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from controller.api.operations import operations_pb2 as wire
from hostlib.wire.methods import Method

SERVICE = "trainyard.operations.v1.Operations"

StateT = TypeVar("StateT", bound=Message)


@dataclass(frozen=True, slots=True)
class Listing(Generic[StateT]):
    """A method that streams all states of a kind, in pages with a field ``states``."""

    method: Method[wire.ListRequest, Any]
    state: type[StateT]


def _listing(name: str, page: type[Message], state: type[StateT]) -> Listing[StateT]:
    return Listing(Method(name, wire.ListRequest, page, SERVICE), state)


LIST_JOBS = _listing("ListJobs", wire.JobPage, wire.JobState)
LIST_FLOWS = _listing("ListFlows", wire.FlowPage, wire.FlowState)
LIST_LEVELS = _listing("ListLevels", wire.LevelPage, wire.LevelState)
LIST_RULES = _listing("ListRules", wire.RulePage, wire.RuleState)
LIST_SWITCHES = _listing("ListSwitches", wire.SwitchPage, wire.SwitchState)
LIST_LINKS = _listing("ListLinks", wire.LinkPage, wire.LinkState)
LIST_CABLES = _listing("ListCables", wire.CablePage, wire.CableState)
LIST_CANDIDATES = _listing("ListCandidates", wire.PairPage, wire.PairState)
LIST_LOADS = _listing("ListLoads", wire.LoadPage, wire.LoadState)
LIST_DROPS = _listing("ListDrops", wire.DropPage, wire.DropState)
LIST_CONTROLLERS = _listing("ListControllers", wire.ControllerPage, wire.ControllerState)
LIST_DRAINS = _listing("ListDrains", wire.DrainPage, wire.DrainState)
DRAIN = Method("Drain", wire.DrainRequest, wire.DrainAnswer, SERVICE)
UNDRAIN = Method("Undrain", wire.DrainTarget, wire.DrainAnswer, SERVICE)
RELOAD = Method("Reload", wire.ReloadRequest, wire.ReloadAnswer, SERVICE)
PAUSE = Method("Pause", wire.PauseRequest, wire.PauseAnswer, SERVICE)
RESUME = Method("Resume", wire.ResumeRequest, wire.PauseAnswer, SERVICE)
RELEASE = Method("Release", wire.PauseRequest, wire.PauseAnswer, SERVICE)
LIST_PINS = _listing("ListPins", wire.PinPage, wire.PinState)
PIN = Method("Pin", wire.PinRequest, wire.PinState, SERVICE)
UNPIN = Method("Unpin", wire.UnpinRequest, wire.UnpinAnswer, SERVICE)
WITHDRAW = Method("Withdraw", wire.WithdrawRequest, wire.Withdrawal, SERVICE)
EXPLAIN = Method("Explain", wire.ExplainRequest, wire.ExplanationPart, SERVICE)
