"""Types of the host library: what a training job reports, and the directives it receives."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address


@dataclass(frozen=True, slots=True)
class Profile:
    """The computation of one iteration.

    ``compute_s`` is the compute phase; communication starts after the fraction ``comm_start`` of it. ``work`` is the
    computation of one iteration over all GPUs, in GPU-seconds, or in FLOPs if every job gives FLOPs.
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True, slots=True)
class Job:
    """A training job. Its name is unique in the cluster; ``gpus`` counts the GPUs on all its hosts.

    A job without a ``profile`` registers no flow groups: the controller measures the traffic between its hosts.
    """

    name: str
    hosts: tuple[str, ...]
    gpus: int
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface of a host, counted from 0."""

    host: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class FiveTuple:
    """The header fields that identify a flow."""

    source_address: IPv4Address
    destination_address: IPv4Address
    protocol: int
    source_port: int
    destination_port: int


@dataclass(frozen=True, slots=True)
class Flow:
    """The bytes that one iteration sends on one connection.

    ``offset_s`` is the ideal finish relative to the group's reference time. Without a ``five_tuple`` the controller
    assigns one, and may change its source port later. ``held_source_port`` is a port that it assigned before and that
    is to stay.
    """

    source: Nic
    destination: Nic
    size_bytes: int
    offset_s: float = 0.0
    five_tuple: FiveTuple | None = None
    held_source_port: int | None = None


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows whose ideal finish times are related (an EchelonFlow); its name is unique in the job."""

    name: str
    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A path through the fabric: its nodes, hosts included, and for every hop which of the parallel links it takes."""

    nodes: tuple[str, ...]
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupInstance:
    """The instance of a flow group in an iteration: started, or ended when all of its flows have arrived."""

    iteration: int
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class FlowDirective:
    """How to send one flow of a group: its path, its level (7 the most urgent), its order at the host (0 first).

    The host sends it from ``source_port``, which changes only if the controller assigned it.
    """

    flow_group: str
    flow: int
    path: Path
    level: int
    order: int
    source_port: int


@dataclass(frozen=True, slots=True)
class Directives:
    """A job's part of one plan.

    ``time_shift_s`` is the start of its iterations after its arrival, modulo whole iterations (``StartShift``); None:
    start whenever possible.
    """

    plan_number: int
    time_shift_s: float | None
    flows: tuple[FlowDirective, ...]


@dataclass(frozen=True, slots=True)
class JobDecision:
    """The plan for one job; None for values that the policy does not have."""

    name: str
    rank: int
    level: int
    intensity: float | None
    correction_factor: float | None
    priority: float | None
    time_shift_s: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class FlowDecision:
    """The plan for one flow; ``steered`` tells whether the plan or the fabric's hash chose the path."""

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


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The plan in force, jobs in order of rank; number 0 before the first plan."""

    number: int
    policy: str
    num_rules: int
    jobs: tuple[JobDecision, ...]
    flows: tuple[FlowDecision, ...]


FlowGroupAssignments = Mapping[str, tuple[FiveTuple, ...]]
"""5-tuples by flow group, in the order of its flows."""
