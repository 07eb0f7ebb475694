"""What a training job tells the controller and what it is told back."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job computes in one iteration.

    ``compute_s`` is the compute phase; communication starts when the fraction ``comm_start`` of it is done.
    ``work`` is the computation of one iteration over all GPUs, in GPU-seconds (or FLOPs, if every job gives FLOPs).
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True, slots=True)
class Job:
    """A training job; its name is unique in the cluster and ``gpus`` counts those on all its hosts.

    Without a ``profile`` it registers no flow groups either: the controller measures its traffic between its hosts.
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
    """What names a flow on the wire."""

    source_address: IPv4Address
    destination_address: IPv4Address
    protocol: int
    source_port: int
    destination_port: int


@dataclass(frozen=True, slots=True)
class Flow:
    """What one iteration sends on one connection.

    ``offset_s`` is the ideal finish relative to the group's reference time. Without a ``five_tuple`` the controller
    assigns one, and may change its source port later; ``held_source_port`` is one that it assigned before, to be kept.
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
    """The nodes of a way, both hosts included, and for every hop which of the parallel links of its two nodes."""

    nodes: tuple[str, ...]
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupInstance:
    """An iteration's instance of a flow group: it has begun, or all of its flows have arrived."""

    iteration: int
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class FlowDirective:
    """How one flow of a group travels: its path, its level (7 the most urgent), its order at the host (0 first).

    It is to be sent from ``source_port``, which changes only where the controller assigned it.
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

    Its iterations are to begin ``time_shift_s`` later than it arrived, or whole iterations after that (``StartShift``);
    None: whenever they can.
    """

    plan_number: int
    time_shift_s: float | None
    flows: tuple[FlowDirective, ...]


@dataclass(frozen=True, slots=True)
class JobDecision:
    """The plan for one job; None where the policy has no such thing."""

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
    """The plan for one flow; ``steered`` tells whether the plan chose the path or the fabric's hash gives it."""

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
    """The plan in force, jobs in order of rank; number 0 where nothing was ever planned."""

    number: int
    policy: str
    num_rules: int
    jobs: tuple[JobDecision, ...]
    flows: tuple[FlowDecision, ...]


FlowGroupAssignments = Mapping[str, tuple[FiveTuple, ...]]
"""5-tuples by flow group, in the order of its flows."""
