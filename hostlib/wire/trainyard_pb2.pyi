from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Profile(_message.Message):
    __slots__ = ("compute_s", "comm_start", "work")
    COMPUTE_S_FIELD_NUMBER: _ClassVar[int]
    COMM_START_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    compute_s: float
    comm_start: float
    work: float
    def __init__(self, compute_s: _Optional[float] = ..., comm_start: _Optional[float] = ..., work: _Optional[float] = ...) -> None: ...

class RegisterJobRequest(_message.Message):
    __slots__ = ("protocol_version", "name", "hosts", "gpus", "profile", "owner_token", "age_s")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    protocol_version: str
    name: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    gpus: int
    profile: Profile
    owner_token: str
    age_s: float
    def __init__(self, protocol_version: _Optional[str] = ..., name: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., gpus: _Optional[int] = ..., profile: _Optional[_Union[Profile, _Mapping]] = ..., owner_token: _Optional[str] = ..., age_s: _Optional[float] = ...) -> None: ...

class RegisterJobResponse(_message.Message):
    __slots__ = ("lease_s",)
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    lease_s: float
    def __init__(self, lease_s: _Optional[float] = ...) -> None: ...

class Nic(_message.Message):
    __slots__ = ("host", "nic")
    HOST_FIELD_NUMBER: _ClassVar[int]
    NIC_FIELD_NUMBER: _ClassVar[int]
    host: str
    nic: int
    def __init__(self, host: _Optional[str] = ..., nic: _Optional[int] = ...) -> None: ...

class FiveTuple(_message.Message):
    __slots__ = ("source_address", "destination_address", "protocol", "source_port", "destination_port")
    SOURCE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PORT_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_PORT_FIELD_NUMBER: _ClassVar[int]
    source_address: int
    destination_address: int
    protocol: int
    source_port: int
    destination_port: int
    def __init__(self, source_address: _Optional[int] = ..., destination_address: _Optional[int] = ..., protocol: _Optional[int] = ..., source_port: _Optional[int] = ..., destination_port: _Optional[int] = ...) -> None: ...

class Flow(_message.Message):
    __slots__ = ("source", "destination", "size_bytes", "offset_s", "five_tuple", "held_source_port", "tcp_port")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    FIVE_TUPLE_FIELD_NUMBER: _ClassVar[int]
    HELD_SOURCE_PORT_FIELD_NUMBER: _ClassVar[int]
    TCP_PORT_FIELD_NUMBER: _ClassVar[int]
    source: Nic
    destination: Nic
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple
    held_source_port: int
    tcp_port: int
    def __init__(self, source: _Optional[_Union[Nic, _Mapping]] = ..., destination: _Optional[_Union[Nic, _Mapping]] = ..., size_bytes: _Optional[int] = ..., offset_s: _Optional[float] = ..., five_tuple: _Optional[_Union[FiveTuple, _Mapping]] = ..., held_source_port: _Optional[int] = ..., tcp_port: _Optional[int] = ...) -> None: ...

class FlowGroup(_message.Message):
    __slots__ = ("name", "flows")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    flows: _containers.RepeatedCompositeFieldContainer[Flow]
    def __init__(self, name: _Optional[str] = ..., flows: _Optional[_Iterable[_Union[Flow, _Mapping]]] = ...) -> None: ...

class Computation(_message.Message):
    __slots__ = ("duration_s", "after")
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    duration_s: float
    after: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, duration_s: _Optional[float] = ..., after: _Optional[_Iterable[int]] = ...) -> None: ...

class Transfer(_message.Message):
    __slots__ = ("flow_group", "flows", "after")
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    flow_group: str
    flows: _containers.RepeatedScalarFieldContainer[int]
    after: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flow_group: _Optional[str] = ..., flows: _Optional[_Iterable[int]] = ..., after: _Optional[_Iterable[int]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("computation", "transfer")
    COMPUTATION_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    computation: Computation
    transfer: Transfer
    def __init__(self, computation: _Optional[_Union[Computation, _Mapping]] = ..., transfer: _Optional[_Union[Transfer, _Mapping]] = ...) -> None: ...

class TaskGraph(_message.Message):
    __slots__ = ("tasks", "is_guessed")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    IS_GUESSED_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    is_guessed: bool
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., is_guessed: _Optional[bool] = ...) -> None: ...

class RegisterFlowGroupsRequest(_message.Message):
    __slots__ = ("job", "flow_groups", "owner_token", "task_graph")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLOW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TASK_GRAPH_FIELD_NUMBER: _ClassVar[int]
    job: str
    flow_groups: _containers.RepeatedCompositeFieldContainer[FlowGroup]
    owner_token: str
    task_graph: TaskGraph
    def __init__(self, job: _Optional[str] = ..., flow_groups: _Optional[_Iterable[_Union[FlowGroup, _Mapping]]] = ..., owner_token: _Optional[str] = ..., task_graph: _Optional[_Union[TaskGraph, _Mapping]] = ...) -> None: ...

class RegisterFlowGroupsResponse(_message.Message):
    __slots__ = ("flow_groups",)
    FLOW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    flow_groups: _containers.RepeatedCompositeFieldContainer[FlowGroupAssignment]
    def __init__(self, flow_groups: _Optional[_Iterable[_Union[FlowGroupAssignment, _Mapping]]] = ...) -> None: ...

class FlowGroupAssignment(_message.Message):
    __slots__ = ("name", "five_tuples")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIVE_TUPLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    five_tuples: _containers.RepeatedCompositeFieldContainer[FiveTuple]
    def __init__(self, name: _Optional[str] = ..., five_tuples: _Optional[_Iterable[_Union[FiveTuple, _Mapping]]] = ...) -> None: ...

class ReportProfileRequest(_message.Message):
    __slots__ = ("job", "owner_token", "profile", "task_graph")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    TASK_GRAPH_FIELD_NUMBER: _ClassVar[int]
    job: str
    owner_token: str
    profile: Profile
    task_graph: TaskGraph
    def __init__(self, job: _Optional[str] = ..., owner_token: _Optional[str] = ..., profile: _Optional[_Union[Profile, _Mapping]] = ..., task_graph: _Optional[_Union[TaskGraph, _Mapping]] = ...) -> None: ...

class ReportProfileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StartFlowGroupsRequest(_message.Message):
    __slots__ = ("job", "owner_token", "instances")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    job: str
    owner_token: str
    instances: _containers.RepeatedCompositeFieldContainer[FlowGroupInstance]
    def __init__(self, job: _Optional[str] = ..., owner_token: _Optional[str] = ..., instances: _Optional[_Iterable[_Union[FlowGroupInstance, _Mapping]]] = ...) -> None: ...

class FlowGroupInstance(_message.Message):
    __slots__ = ("flow_group", "iteration", "has_ended", "sent_bytes", "reason")
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    HAS_ENDED_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flow_group: str
    iteration: int
    has_ended: bool
    sent_bytes: int
    reason: str
    def __init__(self, flow_group: _Optional[str] = ..., iteration: _Optional[int] = ..., has_ended: _Optional[bool] = ..., sent_bytes: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class StartFlowGroupsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("job", "owner_token")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job: str
    owner_token: str
    def __init__(self, job: _Optional[str] = ..., owner_token: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DirectivesRequest(_message.Message):
    __slots__ = ("job", "owner_token")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job: str
    owner_token: str
    def __init__(self, job: _Optional[str] = ..., owner_token: _Optional[str] = ...) -> None: ...

class DirectivesResponse(_message.Message):
    __slots__ = ("plan_number", "time_shift_s", "flows", "is_continued", "flow_groups")
    PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_SHIFT_S_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    IS_CONTINUED_FIELD_NUMBER: _ClassVar[int]
    FLOW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    plan_number: int
    time_shift_s: float
    flows: _containers.RepeatedCompositeFieldContainer[FlowDirective]
    is_continued: bool
    flow_groups: _containers.RepeatedCompositeFieldContainer[FlowGroupDirective]
    def __init__(self, plan_number: _Optional[int] = ..., time_shift_s: _Optional[float] = ..., flows: _Optional[_Iterable[_Union[FlowDirective, _Mapping]]] = ..., is_continued: _Optional[bool] = ..., flow_groups: _Optional[_Iterable[_Union[FlowGroupDirective, _Mapping]]] = ...) -> None: ...

class FlowGroupDirective(_message.Message):
    __slots__ = ("name", "slack_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SLACK_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    slack_s: float
    def __init__(self, name: _Optional[str] = ..., slack_s: _Optional[float] = ...) -> None: ...

class Path(_message.Message):
    __slots__ = ("nodes", "links")
    NODES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    links: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, nodes: _Optional[_Iterable[str]] = ..., links: _Optional[_Iterable[int]] = ...) -> None: ...

class FlowDirective(_message.Message):
    __slots__ = ("flow_group", "flow", "path", "level", "order", "source_port", "rate_bps")
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PORT_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    flow_group: str
    flow: int
    path: Path
    level: int
    order: int
    source_port: int
    rate_bps: float
    def __init__(self, flow_group: _Optional[str] = ..., flow: _Optional[int] = ..., path: _Optional[_Union[Path, _Mapping]] = ..., level: _Optional[int] = ..., order: _Optional[int] = ..., source_port: _Optional[int] = ..., rate_bps: _Optional[float] = ...) -> None: ...

class DeregisterJobRequest(_message.Message):
    __slots__ = ("job", "owner_token")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job: str
    owner_token: str
    def __init__(self, job: _Optional[str] = ..., owner_token: _Optional[str] = ...) -> None: ...

class DeregisterJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExchangeProbesRequest(_message.Message):
    __slots__ = ("protocol_version", "host", "owner_token", "session", "number", "clock_ns", "reports", "dropped", "targets_version")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CLOCK_NS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    TARGETS_VERSION_FIELD_NUMBER: _ClassVar[int]
    protocol_version: str
    host: str
    owner_token: str
    session: int
    number: int
    clock_ns: int
    reports: _containers.RepeatedCompositeFieldContainer[ProbeReport]
    dropped: _containers.RepeatedCompositeFieldContainer[DroppedPackets]
    targets_version: int
    def __init__(self, protocol_version: _Optional[str] = ..., host: _Optional[str] = ..., owner_token: _Optional[str] = ..., session: _Optional[int] = ..., number: _Optional[int] = ..., clock_ns: _Optional[int] = ..., reports: _Optional[_Iterable[_Union[ProbeReport, _Mapping]]] = ..., dropped: _Optional[_Iterable[_Union[DroppedPackets, _Mapping]]] = ..., targets_version: _Optional[int] = ...) -> None: ...

class ProbeReport(_message.Message):
    __slots__ = ("five_tuple", "session", "sequence", "port_sequence", "sent_ns", "age_ns", "stack")
    FIVE_TUPLE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PORT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    AGE_NS_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    five_tuple: FiveTuple
    session: int
    sequence: int
    port_sequence: int
    sent_ns: int
    age_ns: int
    stack: bytes
    def __init__(self, five_tuple: _Optional[_Union[FiveTuple, _Mapping]] = ..., session: _Optional[int] = ..., sequence: _Optional[int] = ..., port_sequence: _Optional[int] = ..., sent_ns: _Optional[int] = ..., age_ns: _Optional[int] = ..., stack: _Optional[bytes] = ...) -> None: ...

class DroppedPackets(_message.Message):
    __slots__ = ("reason", "packets")
    REASON_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    reason: str
    packets: int
    def __init__(self, reason: _Optional[str] = ..., packets: _Optional[int] = ...) -> None: ...

class ExchangeProbesResponse(_message.Message):
    __slots__ = ("interval_s", "targets_version", "targets")
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    TARGETS_VERSION_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    interval_s: float
    targets_version: int
    targets: _containers.RepeatedCompositeFieldContainer[ProbeTarget]
    def __init__(self, interval_s: _Optional[float] = ..., targets_version: _Optional[int] = ..., targets: _Optional[_Iterable[_Union[ProbeTarget, _Mapping]]] = ...) -> None: ...

class ProbeTarget(_message.Message):
    __slots__ = ("source_address", "destination_address", "protocol", "destination_port", "source_ports", "is_exploring")
    SOURCE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_PORT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PORTS_FIELD_NUMBER: _ClassVar[int]
    IS_EXPLORING_FIELD_NUMBER: _ClassVar[int]
    source_address: int
    destination_address: int
    protocol: int
    destination_port: int
    source_ports: _containers.RepeatedScalarFieldContainer[int]
    is_exploring: bool
    def __init__(self, source_address: _Optional[int] = ..., destination_address: _Optional[int] = ..., protocol: _Optional[int] = ..., destination_port: _Optional[int] = ..., source_ports: _Optional[_Iterable[int]] = ..., is_exploring: _Optional[bool] = ...) -> None: ...

class GetPlanRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetPlanResponse(_message.Message):
    __slots__ = ("plan_number", "policy", "num_rules", "jobs", "flows")
    PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    NUM_RULES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    plan_number: int
    policy: str
    num_rules: int
    jobs: _containers.RepeatedCompositeFieldContainer[JobDecision]
    flows: _containers.RepeatedCompositeFieldContainer[FlowDecision]
    def __init__(self, plan_number: _Optional[int] = ..., policy: _Optional[str] = ..., num_rules: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[JobDecision, _Mapping]]] = ..., flows: _Optional[_Iterable[_Union[FlowDecision, _Mapping]]] = ...) -> None: ...

class JobDecision(_message.Message):
    __slots__ = ("name", "rank", "level", "intensity", "correction_factor", "priority", "time_shift_s", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_FIELD_NUMBER: _ClassVar[int]
    CORRECTION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIME_SHIFT_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    level: int
    intensity: float
    correction_factor: float
    priority: float
    time_shift_s: float
    reason: str
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., level: _Optional[int] = ..., intensity: _Optional[float] = ..., correction_factor: _Optional[float] = ..., priority: _Optional[float] = ..., time_shift_s: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class FlowDecision(_message.Message):
    __slots__ = ("job", "flow_group", "flow", "source", "destination", "five_tuple", "path", "steered", "level", "order")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    FIVE_TUPLE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    STEERED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    job: str
    flow_group: str
    flow: int
    source: Nic
    destination: Nic
    five_tuple: FiveTuple
    path: Path
    steered: bool
    level: int
    order: int
    def __init__(self, job: _Optional[str] = ..., flow_group: _Optional[str] = ..., flow: _Optional[int] = ..., source: _Optional[_Union[Nic, _Mapping]] = ..., destination: _Optional[_Union[Nic, _Mapping]] = ..., five_tuple: _Optional[_Union[FiveTuple, _Mapping]] = ..., path: _Optional[_Union[Path, _Mapping]] = ..., steered: _Optional[bool] = ..., level: _Optional[int] = ..., order: _Optional[int] = ...) -> None: ...

class LocateNicsRequest(_message.Message):
    __slots__ = ("addresses",)
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, addresses: _Optional[_Iterable[int]] = ...) -> None: ...

class LocateNicsResponse(_message.Message):
    __slots__ = ("locations",)
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    locations: _containers.RepeatedCompositeFieldContainer[NicLocation]
    def __init__(self, locations: _Optional[_Iterable[_Union[NicLocation, _Mapping]]] = ...) -> None: ...

class NicLocation(_message.Message):
    __slots__ = ("nic",)
    NIC_FIELD_NUMBER: _ClassVar[int]
    nic: Nic
    def __init__(self, nic: _Optional[_Union[Nic, _Mapping]] = ...) -> None: ...

class GetPathLoadsRequest(_message.Message):
    __slots__ = ("pairs",)
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[NicPair]
    def __init__(self, pairs: _Optional[_Iterable[_Union[NicPair, _Mapping]]] = ...) -> None: ...

class NicPair(_message.Message):
    __slots__ = ("source", "destination")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    source: Nic
    destination: Nic
    def __init__(self, source: _Optional[_Union[Nic, _Mapping]] = ..., destination: _Optional[_Union[Nic, _Mapping]] = ...) -> None: ...

class GetPathLoadsResponse(_message.Message):
    __slots__ = ("loads",)
    LOADS_FIELD_NUMBER: _ClassVar[int]
    loads: _containers.RepeatedCompositeFieldContainer[PathLoad]
    def __init__(self, loads: _Optional[_Iterable[_Union[PathLoad, _Mapping]]] = ...) -> None: ...

class PathLoad(_message.Message):
    __slots__ = ("load", "free_bps")
    LOAD_FIELD_NUMBER: _ClassVar[int]
    FREE_BPS_FIELD_NUMBER: _ClassVar[int]
    load: float
    free_bps: float
    def __init__(self, load: _Optional[float] = ..., free_bps: _Optional[float] = ...) -> None: ...
