from hostlib.wire import trainyard_pb2 as _trainyard_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DrainKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SWITCH: _ClassVar[DrainKind]
    LINK: _ClassVar[DrainKind]
    HOST: _ClassVar[DrainKind]

class ProfileSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOLD: _ClassVar[ProfileSource]
    NOT_KNOWN_YET: _ClassVar[ProfileSource]
    BEING_MEASURED: _ClassVar[ProfileSource]
    MEASURED: _ClassVar[ProfileSource]

class Condition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AWAY: _ClassVar[Condition]
    BEHIND: _ClassVar[Condition]
    CAUGHT_UP: _ClassVar[Condition]
    REFUSES: _ClassVar[Condition]
    LOST: _ClassVar[Condition]

class Freshness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRESH: _ClassVar[Freshness]
    STALE: _ClassVar[Freshness]
    UNSEEN: _ClassVar[Freshness]
    BLACK_HOLE: _ClassVar[Freshness]
SWITCH: DrainKind
LINK: DrainKind
HOST: DrainKind
TOLD: ProfileSource
NOT_KNOWN_YET: ProfileSource
BEING_MEASURED: ProfileSource
MEASURED: ProfileSource
AWAY: Condition
BEHIND: Condition
CAUGHT_UP: Condition
REFUSES: Condition
LOST: Condition
FRESH: Freshness
STALE: Freshness
UNSEEN: Freshness
BLACK_HOLE: Freshness

class ReloadRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReloadAnswer(_message.Message):
    __slots__ = ("changes", "problems")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedScalarFieldContainer[str]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, changes: _Optional[_Iterable[str]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PauseAnswer(_message.Message):
    __slots__ = ("is_changed", "pause", "behind")
    IS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    is_changed: bool
    pause: PauseState
    behind: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, is_changed: _Optional[bool] = ..., pause: _Optional[_Union[PauseState, _Mapping]] = ..., behind: _Optional[_Iterable[str]] = ...) -> None: ...

class PauseState(_message.Message):
    __slots__ = ("since_ago_s", "by", "reason", "is_released")
    SINCE_AGO_S_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    IS_RELEASED_FIELD_NUMBER: _ClassVar[int]
    since_ago_s: float
    by: str
    reason: str
    is_released: bool
    def __init__(self, since_ago_s: _Optional[float] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., is_released: _Optional[bool] = ...) -> None: ...

class PinRequest(_message.Message):
    __slots__ = ("name", "level", "path", "for_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FOR_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    path: str
    for_s: float
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ..., path: _Optional[str] = ..., for_s: _Optional[float] = ...) -> None: ...

class UnpinRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UnpinAnswer(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PinPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[PinState]
    def __init__(self, states: _Optional[_Iterable[_Union[PinState, _Mapping]]] = ...) -> None: ...

class PinState(_message.Message):
    __slots__ = ("name", "level", "path", "since_ago_s", "left_s", "by", "holds", "problem")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SINCE_AGO_S_FIELD_NUMBER: _ClassVar[int]
    LEFT_S_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    path: str
    since_ago_s: float
    left_s: float
    by: str
    holds: bool
    problem: str
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ..., path: _Optional[str] = ..., since_ago_s: _Optional[float] = ..., left_s: _Optional[float] = ..., by: _Optional[str] = ..., holds: _Optional[bool] = ..., problem: _Optional[str] = ...) -> None: ...

class DrainTarget(_message.Message):
    __slots__ = ("kind", "name", "other", "parallel")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    kind: DrainKind
    name: str
    other: str
    parallel: int
    def __init__(self, kind: _Optional[_Union[DrainKind, str]] = ..., name: _Optional[str] = ..., other: _Optional[str] = ..., parallel: _Optional[int] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("target", "force")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    target: DrainTarget
    force: bool
    def __init__(self, target: _Optional[_Union[DrainTarget, _Mapping]] = ..., force: _Optional[bool] = ...) -> None: ...

class DrainAnswer(_message.Message):
    __slots__ = ("name", "is_changed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_changed: bool
    def __init__(self, name: _Optional[str] = ..., is_changed: _Optional[bool] = ...) -> None: ...

class DrainPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[DrainState]
    def __init__(self, states: _Optional[_Iterable[_Union[DrainState, _Mapping]]] = ...) -> None: ...

class DrainState(_message.Message):
    __slots__ = ("kind", "name", "is_forced", "since_ago_s", "by", "is_safe", "waits_for", "jobs", "quiet_s")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_FORCED_FIELD_NUMBER: _ClassVar[int]
    SINCE_AGO_S_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    IS_SAFE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    QUIET_S_FIELD_NUMBER: _ClassVar[int]
    kind: DrainKind
    name: str
    is_forced: bool
    since_ago_s: float
    by: str
    is_safe: bool
    waits_for: _containers.RepeatedScalarFieldContainer[str]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    quiet_s: float
    def __init__(self, kind: _Optional[_Union[DrainKind, str]] = ..., name: _Optional[str] = ..., is_forced: _Optional[bool] = ..., since_ago_s: _Optional[float] = ..., by: _Optional[str] = ..., is_safe: _Optional[bool] = ..., waits_for: _Optional[_Iterable[str]] = ..., jobs: _Optional[_Iterable[str]] = ..., quiet_s: _Optional[float] = ...) -> None: ...

class WithdrawRequest(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class Withdrawal(_message.Message):
    __slots__ = ("flow_groups",)
    FLOW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    flow_groups: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, flow_groups: _Optional[_Iterable[int]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JobPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[JobState]
    def __init__(self, states: _Optional[_Iterable[_Union[JobState, _Mapping]]] = ...) -> None: ...

class FlowPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[FlowState]
    def __init__(self, states: _Optional[_Iterable[_Union[FlowState, _Mapping]]] = ...) -> None: ...

class LevelPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[LevelState]
    def __init__(self, states: _Optional[_Iterable[_Union[LevelState, _Mapping]]] = ...) -> None: ...

class RulePage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[RuleState]
    def __init__(self, states: _Optional[_Iterable[_Union[RuleState, _Mapping]]] = ...) -> None: ...

class SwitchPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[SwitchState]
    def __init__(self, states: _Optional[_Iterable[_Union[SwitchState, _Mapping]]] = ...) -> None: ...

class LinkPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[LinkState]
    def __init__(self, states: _Optional[_Iterable[_Union[LinkState, _Mapping]]] = ...) -> None: ...

class CablePage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[CableState]
    def __init__(self, states: _Optional[_Iterable[_Union[CableState, _Mapping]]] = ...) -> None: ...

class PairPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[PairState]
    def __init__(self, states: _Optional[_Iterable[_Union[PairState, _Mapping]]] = ...) -> None: ...

class LoadPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[LoadState]
    def __init__(self, states: _Optional[_Iterable[_Union[LoadState, _Mapping]]] = ...) -> None: ...

class DropPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[DropState]
    def __init__(self, states: _Optional[_Iterable[_Union[DropState, _Mapping]]] = ...) -> None: ...

class ControllerPage(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[ControllerState]
    def __init__(self, states: _Optional[_Iterable[_Union[ControllerState, _Mapping]]] = ...) -> None: ...

class ControllerState(_message.Message):
    __slots__ = ("name", "term", "plan_number", "database", "database_problem", "recorded_plan_number", "lost_writes", "policy", "failed_decisions", "policy_problem", "worst_stall_s", "stalls", "long_stalls", "refusals", "pause", "reload")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    DATABASE_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    RECORDED_PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    LOST_WRITES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    FAILED_DECISIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    WORST_STALL_S_FIELD_NUMBER: _ClassVar[int]
    STALLS_FIELD_NUMBER: _ClassVar[int]
    LONG_STALLS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    RELOAD_FIELD_NUMBER: _ClassVar[int]
    name: str
    term: int
    plan_number: int
    database: str
    database_problem: str
    recorded_plan_number: int
    lost_writes: int
    policy: str
    failed_decisions: int
    policy_problem: str
    worst_stall_s: float
    stalls: int
    long_stalls: int
    refusals: _containers.RepeatedCompositeFieldContainer[Refusals]
    pause: PauseState
    reload: ReloadState
    def __init__(self, name: _Optional[str] = ..., term: _Optional[int] = ..., plan_number: _Optional[int] = ..., database: _Optional[str] = ..., database_problem: _Optional[str] = ..., recorded_plan_number: _Optional[int] = ..., lost_writes: _Optional[int] = ..., policy: _Optional[str] = ..., failed_decisions: _Optional[int] = ..., policy_problem: _Optional[str] = ..., worst_stall_s: _Optional[float] = ..., stalls: _Optional[int] = ..., long_stalls: _Optional[int] = ..., refusals: _Optional[_Iterable[_Union[Refusals, _Mapping]]] = ..., pause: _Optional[_Union[PauseState, _Mapping]] = ..., reload: _Optional[_Union[ReloadState, _Mapping]] = ...) -> None: ...

class ReloadState(_message.Message):
    __slots__ = ("step", "for_s")
    STEP_FIELD_NUMBER: _ClassVar[int]
    FOR_S_FIELD_NUMBER: _ClassVar[int]
    step: str
    for_s: float
    def __init__(self, step: _Optional[str] = ..., for_s: _Optional[float] = ...) -> None: ...

class Refusals(_message.Message):
    __slots__ = ("tenant", "status", "calls")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    status: str
    calls: int
    def __init__(self, tenant: _Optional[str] = ..., status: _Optional[str] = ..., calls: _Optional[int] = ...) -> None: ...

class JobState(_message.Message):
    __slots__ = ("name", "hosts", "gpus", "flow_groups", "flows", "lease_s", "rank", "level", "intensity", "correction_factor", "priority", "profile")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    FLOW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_FIELD_NUMBER: _ClassVar[int]
    CORRECTION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    name: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    gpus: int
    flow_groups: int
    flows: int
    lease_s: float
    rank: int
    level: int
    intensity: float
    correction_factor: float
    priority: float
    profile: ProfileState
    def __init__(self, name: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., gpus: _Optional[int] = ..., flow_groups: _Optional[int] = ..., flows: _Optional[int] = ..., lease_s: _Optional[float] = ..., rank: _Optional[int] = ..., level: _Optional[int] = ..., intensity: _Optional[float] = ..., correction_factor: _Optional[float] = ..., priority: _Optional[float] = ..., profile: _Optional[_Union[ProfileState, _Mapping]] = ...) -> None: ...

class ProfileState(_message.Message):
    __slots__ = ("source", "age_s", "period_s", "transfer_s", "iterations")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_S_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    source: ProfileSource
    age_s: float
    period_s: float
    transfer_s: float
    iterations: int
    def __init__(self, source: _Optional[_Union[ProfileSource, str]] = ..., age_s: _Optional[float] = ..., period_s: _Optional[float] = ..., transfer_s: _Optional[float] = ..., iterations: _Optional[int] = ...) -> None: ...

class FlowState(_message.Message):
    __slots__ = ("job", "flow_group", "flow", "five_tuple", "size_bytes", "offset_s", "path", "steered", "level", "order", "is_cut_off")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    FIVE_TUPLE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    STEERED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    IS_CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    job: str
    flow_group: str
    flow: int
    five_tuple: str
    size_bytes: float
    offset_s: float
    path: _trainyard_pb2.Path
    steered: bool
    level: int
    order: int
    is_cut_off: bool
    def __init__(self, job: _Optional[str] = ..., flow_group: _Optional[str] = ..., flow: _Optional[int] = ..., five_tuple: _Optional[str] = ..., size_bytes: _Optional[float] = ..., offset_s: _Optional[float] = ..., path: _Optional[_Union[_trainyard_pb2.Path, _Mapping]] = ..., steered: _Optional[bool] = ..., level: _Optional[int] = ..., order: _Optional[int] = ..., is_cut_off: _Optional[bool] = ...) -> None: ...

class LevelState(_message.Message):
    __slots__ = ("level", "jobs", "flows", "size_bytes")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    level: int
    jobs: _containers.RepeatedScalarFieldContainer[str]
    flows: int
    size_bytes: float
    def __init__(self, level: _Optional[int] = ..., jobs: _Optional[_Iterable[str]] = ..., flows: _Optional[int] = ..., size_bytes: _Optional[float] = ...) -> None: ...

class LinkState(_message.Message):
    __slots__ = ("source", "destination", "parallel", "is_down", "falls", "fell_ago_s", "held_for_s", "claimants", "state", "ports")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    IS_DOWN_FIELD_NUMBER: _ClassVar[int]
    FALLS_FIELD_NUMBER: _ClassVar[int]
    FELL_AGO_S_FIELD_NUMBER: _ClassVar[int]
    HELD_FOR_S_FIELD_NUMBER: _ClassVar[int]
    CLAIMANTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    parallel: int
    is_down: bool
    falls: int
    fell_ago_s: float
    held_for_s: float
    claimants: _containers.RepeatedScalarFieldContainer[str]
    state: str
    ports: str
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., parallel: _Optional[int] = ..., is_down: _Optional[bool] = ..., falls: _Optional[int] = ..., fell_ago_s: _Optional[float] = ..., held_for_s: _Optional[float] = ..., claimants: _Optional[_Iterable[str]] = ..., state: _Optional[str] = ..., ports: _Optional[str] = ...) -> None: ...

class CableState(_message.Message):
    __slots__ = ("place", "problem", "found", "for_s", "is_unused")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    FOR_S_FIELD_NUMBER: _ClassVar[int]
    IS_UNUSED_FIELD_NUMBER: _ClassVar[int]
    place: str
    problem: str
    found: str
    for_s: float
    is_unused: bool
    def __init__(self, place: _Optional[str] = ..., problem: _Optional[str] = ..., found: _Optional[str] = ..., for_s: _Optional[float] = ..., is_unused: _Optional[bool] = ...) -> None: ...

class RuleState(_message.Message):
    __slots__ = ("switch", "five_tuple", "port", "next_node", "level")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    FIVE_TUPLE_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    NEXT_NODE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    switch: str
    five_tuple: str
    port: int
    next_node: str
    level: int
    def __init__(self, switch: _Optional[str] = ..., five_tuple: _Optional[str] = ..., port: _Optional[int] = ..., next_node: _Optional[str] = ..., level: _Optional[int] = ...) -> None: ...

class SwitchState(_message.Message):
    __slots__ = ("name", "address", "device_id", "condition", "problem", "num_rules", "num_planned_rules", "changed_ago_s", "drifted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    NUM_RULES_FIELD_NUMBER: _ClassVar[int]
    NUM_PLANNED_RULES_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AGO_S_FIELD_NUMBER: _ClassVar[int]
    DRIFTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    device_id: int
    condition: Condition
    problem: str
    num_rules: int
    num_planned_rules: int
    changed_ago_s: float
    drifted: int
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., device_id: _Optional[int] = ..., condition: _Optional[_Union[Condition, str]] = ..., problem: _Optional[str] = ..., num_rules: _Optional[int] = ..., num_planned_rules: _Optional[int] = ..., changed_ago_s: _Optional[float] = ..., drifted: _Optional[int] = ...) -> None: ...

class CandidateState(_message.Message):
    __slots__ = ("path", "freshness", "source_ports", "age_s", "loss")
    PATH_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PORTS_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    path: _trainyard_pb2.Path
    freshness: Freshness
    source_ports: _containers.RepeatedScalarFieldContainer[int]
    age_s: float
    loss: float
    def __init__(self, path: _Optional[_Union[_trainyard_pb2.Path, _Mapping]] = ..., freshness: _Optional[_Union[Freshness, str]] = ..., source_ports: _Optional[_Iterable[int]] = ..., age_s: _Optional[float] = ..., loss: _Optional[float] = ...) -> None: ...

class PairState(_message.Message):
    __slots__ = ("source", "destination", "protocol", "destination_port", "is_complete", "received", "missing", "late", "duplicates", "candidates")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_PORT_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    protocol: int
    destination_port: int
    is_complete: bool
    received: int
    missing: int
    late: int
    duplicates: int
    candidates: _containers.RepeatedCompositeFieldContainer[CandidateState]
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., protocol: _Optional[int] = ..., destination_port: _Optional[int] = ..., is_complete: _Optional[bool] = ..., received: _Optional[int] = ..., missing: _Optional[int] = ..., late: _Optional[int] = ..., duplicates: _Optional[int] = ..., candidates: _Optional[_Iterable[_Union[CandidateState, _Mapping]]] = ...) -> None: ...

class LevelMeasurement(_message.Message):
    __slots__ = ("level", "latency_us", "queue_packets")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    QUEUE_PACKETS_FIELD_NUMBER: _ClassVar[int]
    level: int
    latency_us: int
    queue_packets: int
    def __init__(self, level: _Optional[int] = ..., latency_us: _Optional[int] = ..., queue_packets: _Optional[int] = ...) -> None: ...

class LoadState(_message.Message):
    __slots__ = ("source", "destination", "parallel", "rate_bps", "load_bps", "age_s", "levels", "foreign_bps")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    LOAD_BPS_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_BPS_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    parallel: int
    rate_bps: float
    load_bps: float
    age_s: float
    levels: _containers.RepeatedCompositeFieldContainer[LevelMeasurement]
    foreign_bps: float
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., parallel: _Optional[int] = ..., rate_bps: _Optional[float] = ..., load_bps: _Optional[float] = ..., age_s: _Optional[float] = ..., levels: _Optional[_Iterable[_Union[LevelMeasurement, _Mapping]]] = ..., foreign_bps: _Optional[float] = ...) -> None: ...

class DropState(_message.Message):
    __slots__ = ("host", "reason", "count")
    HOST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    host: str
    reason: str
    count: int
    def __init__(self, host: _Optional[str] = ..., reason: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplanationPart(_message.Message):
    __slots__ = ("octets",)
    OCTETS_FIELD_NUMBER: _ClassVar[int]
    octets: bytes
    def __init__(self, octets: _Optional[bytes] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("policy", "plan_number", "job", "flow", "jobs", "links", "pause", "idle_pin")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    IDLE_PIN_FIELD_NUMBER: _ClassVar[int]
    policy: str
    plan_number: int
    job: JobExplanation
    flow: FlowExplanation
    jobs: _containers.RepeatedScalarFieldContainer[str]
    links: _containers.RepeatedCompositeFieldContainer[LinkUse]
    pause: PauseState
    idle_pin: PinState
    def __init__(self, policy: _Optional[str] = ..., plan_number: _Optional[int] = ..., job: _Optional[_Union[JobExplanation, _Mapping]] = ..., flow: _Optional[_Union[FlowExplanation, _Mapping]] = ..., jobs: _Optional[_Iterable[str]] = ..., links: _Optional[_Iterable[_Union[LinkUse, _Mapping]]] = ..., pause: _Optional[_Union[PauseState, _Mapping]] = ..., idle_pin: _Optional[_Union[PinState, _Mapping]] = ...) -> None: ...

class LinkUse(_message.Message):
    __slots__ = ("source", "destination", "parallel", "rate_bps", "planned_utilisation", "jobs", "places")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_UTILISATION_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    parallel: int
    rate_bps: float
    planned_utilisation: float
    jobs: _containers.RepeatedScalarFieldContainer[str]
    places: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., parallel: _Optional[int] = ..., rate_bps: _Optional[float] = ..., planned_utilisation: _Optional[float] = ..., jobs: _Optional[_Iterable[str]] = ..., places: _Optional[_Iterable[int]] = ...) -> None: ...

class JobExplanation(_message.Message):
    __slots__ = ("state", "jobs", "reason", "work", "communication_s", "alone_iteration_s", "bottleneck", "neighbours", "host_neighbours", "tasks", "is_guessed", "compressed", "pin")
    STATE_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATION_S_FIELD_NUMBER: _ClassVar[int]
    ALONE_ITERATION_S_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    HOST_NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    IS_GUESSED_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    state: JobState
    jobs: int
    reason: str
    work: float
    communication_s: float
    alone_iteration_s: float
    bottleneck: LinkUse
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    host_neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    tasks: int
    is_guessed: bool
    compressed: _containers.RepeatedCompositeFieldContainer[CompressionState]
    pin: PinState
    def __init__(self, state: _Optional[_Union[JobState, _Mapping]] = ..., jobs: _Optional[int] = ..., reason: _Optional[str] = ..., work: _Optional[float] = ..., communication_s: _Optional[float] = ..., alone_iteration_s: _Optional[float] = ..., bottleneck: _Optional[_Union[LinkUse, _Mapping]] = ..., neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., host_neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., tasks: _Optional[int] = ..., is_guessed: _Optional[bool] = ..., compressed: _Optional[_Iterable[_Union[CompressionState, _Mapping]]] = ..., pin: _Optional[_Union[PinState, _Mapping]] = ...) -> None: ...

class CompressionState(_message.Message):
    __slots__ = ("flow_group", "sent_bytes", "dense_bytes", "rate_bps", "slack_s", "reason")
    FLOW_GROUP_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    DENSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    SLACK_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flow_group: str
    sent_bytes: float
    dense_bytes: float
    rate_bps: float
    slack_s: float
    reason: str
    def __init__(self, flow_group: _Optional[str] = ..., sent_bytes: _Optional[float] = ..., dense_bytes: _Optional[float] = ..., rate_bps: _Optional[float] = ..., slack_s: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class Neighbour(_message.Message):
    __slots__ = ("name", "rank", "level", "shared_links", "busiest", "busiest_link")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SHARED_LINKS_FIELD_NUMBER: _ClassVar[int]
    BUSIEST_FIELD_NUMBER: _ClassVar[int]
    BUSIEST_LINK_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    level: int
    shared_links: int
    busiest: LinkUse
    busiest_link: int
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., level: _Optional[int] = ..., shared_links: _Optional[int] = ..., busiest: _Optional[_Union[LinkUse, _Mapping]] = ..., busiest_link: _Optional[int] = ...) -> None: ...

class FlowExplanation(_message.Message):
    __slots__ = ("state", "candidates", "links", "rules", "pin")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    state: FlowState
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    links: _containers.RepeatedCompositeFieldContainer[LinkUse]
    rules: _containers.RepeatedCompositeFieldContainer[RuleState]
    pin: PinState
    def __init__(self, state: _Optional[_Union[FlowState, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[LinkUse, _Mapping]]] = ..., rules: _Optional[_Iterable[_Union[RuleState, _Mapping]]] = ..., pin: _Optional[_Union[PinState, _Mapping]] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("path", "chosen", "hashed", "others_utilisation", "foreign_utilisation")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    HASHED_FIELD_NUMBER: _ClassVar[int]
    OTHERS_UTILISATION_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_UTILISATION_FIELD_NUMBER: _ClassVar[int]
    path: _trainyard_pb2.Path
    chosen: bool
    hashed: bool
    others_utilisation: float
    foreign_utilisation: float
    def __init__(self, path: _Optional[_Union[_trainyard_pb2.Path, _Mapping]] = ..., chosen: _Optional[bool] = ..., hashed: _Optional[bool] = ..., others_utilisation: _Optional[float] = ..., foreign_utilisation: _Optional[float] = ...) -> None: ...
