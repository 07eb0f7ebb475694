"""The methods of the service ``trainyard.operations.v1.Operations``, typed, for both ends of the wire."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from controller.api.operations import operations_pb2 as wire

SERVICE = "trainyard.operations.v1.Operations"

StateT = TypeVar("StateT", bound=Message)


@dataclass(frozen=True, slots=True)
class Listing(Generic[StateT]):
    """A method that lists what there is, one message each."""

    name: str
    state: type[StateT]


LIST_JOBS = Listing("ListJobs", wire.JobState)
LIST_FLOWS = Listing("ListFlows", wire.FlowState)
LIST_LEVELS = Listing("ListLevels", wire.LevelState)
LIST_RULES = Listing("ListRules", wire.RuleState)
LIST_SWITCHES = Listing("ListSwitches", wire.SwitchState)
LIST_LINKS = Listing("ListLinks", wire.LinkState)
LIST_CANDIDATES = Listing("ListCandidates", wire.PairState)
LIST_LOADS = Listing("ListLoads", wire.LoadState)
LIST_DROPS = Listing("ListDrops", wire.DropState)
LIST_CONTROLLERS = Listing("ListControllers", wire.ControllerState)
EXPLAIN = "Explain"
