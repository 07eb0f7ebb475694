"""Typed methods of the service ``trainyard.v1.Controller``, for both ends of the wire.

gRPC's generated stubs are untyped, import by absolute names and tie grpcio to the generator's version.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from hostlib.wire import trainyard_pb2 as wire

PROTOCOL_VERSION = "trainyard.v1"
SERVICE = f"{PROTOCOL_VERSION}.Controller"

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT, ResponseT]):
    """One method of a service with its request and response types."""

    name: str
    request: type[RequestT]
    response: type[ResponseT]
    service: str = SERVICE

    @property
    def path(self) -> str:
        """Path by which gRPC addresses the method."""
        return f"/{self.service}/{self.name}"


REGISTER_JOB = Method("RegisterJob", wire.RegisterJobRequest, wire.RegisterJobResponse)
REGISTER_FLOW_GROUPS = Method("RegisterFlowGroups", wire.RegisterFlowGroupsRequest, wire.RegisterFlowGroupsResponse)
REPORT_PROFILE = Method("ReportProfile", wire.ReportProfileRequest, wire.ReportProfileResponse)
START_FLOW_GROUPS = Method("StartFlowGroups", wire.StartFlowGroupsRequest, wire.StartFlowGroupsResponse)
HEARTBEAT = Method("Heartbeat", wire.HeartbeatRequest, wire.HeartbeatResponse)
DIRECTIVES = Method("Directives", wire.DirectivesRequest, wire.DirectivesResponse)
DEREGISTER_JOB = Method("DeregisterJob", wire.DeregisterJobRequest, wire.DeregisterJobResponse)
EXCHANGE_PROBES = Method("ExchangeProbes", wire.ExchangeProbesRequest, wire.ExchangeProbesResponse)
GET_PLAN = Method("GetPlan", wire.GetPlanRequest, wire.GetPlanResponse)
LOCATE_NICS = Method("LocateNics", wire.LocateNicsRequest, wire.LocateNicsResponse)
GET_PATH_LOADS = Method("GetPathLoads", wire.GetPathLoadsRequest, wire.GetPathLoadsResponse)
