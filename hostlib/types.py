"""Types of the host library: what a training job reports, and the directives it receives.

What a job reports is checked when it is made: a value of a wrong type or out of range raises ValueError, naming the
field. Lists become tuples, and NumPy's numbers Python's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from hostlib import checks
from hostlib.checks import MAX_32, MAX_ITERATION, MAX_PORT, MAX_SIZE_BYTES

_FIVE_TUPLE_FIELDS = (("protocol", 0xFF), ("source_port", MAX_PORT), ("destination_port", MAX_PORT))

_set = object.__setattr__


def _is_int(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


@dataclass(frozen=True, slots=True)
class Profile:
    """The computation of one iteration.

    ``compute_s`` is the compute phase; communication starts after the fraction ``comm_start`` of it. ``work`` is the
    computation of one iteration over all GPUs, in GPU-seconds, or in FLOPs if every job gives FLOPs.
    """

    compute_s: float
    comm_start: float
    work: float

    def __post_init__(self) -> None:
        _set(self, "compute_s", checks.number("compute_s", self.compute_s))
        _set(self, "comm_start", checks.number("comm_start", self.comm_start, most=1.0))
        _set(self, "work", checks.number("work", self.work))


@dataclass(frozen=True, slots=True)
class Job:
    """A training job. Its name is unique in the cluster; ``gpus`` counts the GPUs on all its hosts.

    A job without a ``profile`` registers no flow groups: the controller measures the traffic between its hosts.
    """

    name: str
    hosts: tuple[str, ...]
    gpus: int
    profile: Profile | None = None

    def __post_init__(self) -> None:
        checks.name("name", self.name)
        _set(self, "hosts", checks.names("hosts", self.hosts))
        if not self.hosts:
            raise ValueError("hosts: expected at least one host")
        _set(self, "gpus", checks.integer("gpus", self.gpus, 1, MAX_32))
        if self.profile is not None:
            checks.instance("profile", self.profile, Profile)


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface of a host, counted from 0."""

    host: str
    index: int = 0

    def __post_init__(self) -> None:
        checks.name("host", self.host)
        if not _is_int(self.index, MAX_32):
            _set(self, "index", checks.integer("index", self.index, 0, MAX_32))


@dataclass(frozen=True, slots=True)
class NicPair:
    """NICs of two hosts, of which the first one sends."""

    source: Nic
    destination: Nic

    def __post_init__(self) -> None:
        if (
            checks.instance("source", self.source, Nic).host
            == checks.instance("destination", self.destination, Nic).host
        ):
            raise ValueError(
                f"destination: expected another host than the source's, got {checks.shown(self.source.host)}"
            )


@dataclass(frozen=True, slots=True)
class PathLoad:
    """The best that the candidate paths between two NICs offer.

    Where the busiest link of a path is least busy, ``load`` is the share of its rate that is in use. What is planned
    may add up to more than 1; None: no path is left. ``free_bps`` is the most that a path has left on all its links.
    """

    load: float | None
    free_bps: float

    def __post_init__(self) -> None:
        if self.load is not None:
            _set(self, "load", checks.number("load", self.load))
        _set(self, "free_bps", checks.number("free_bps", self.free_bps))


@dataclass(frozen=True, slots=True)
class FiveTuple:
    """The header fields that identify a flow."""

    source_address: IPv4Address
    destination_address: IPv4Address
    protocol: int
    source_port: int
    destination_port: int

    def __post_init__(self) -> None:
        for name, most in _FIVE_TUPLE_FIELDS:
            value = getattr(self, name)
            if not _is_int(value, most):
                _set(self, name, checks.integer(name, value, 0, most))
        checks.instance("source_address", self.source_address, IPv4Address)
        checks.instance("destination_address", self.destination_address, IPv4Address)


@dataclass(frozen=True, slots=True)
class Flow:
    """The bytes that one iteration sends on one connection.

    ``offset_s`` is the ideal finish relative to the group's reference time. Without a ``five_tuple`` the controller
    assigns one, and may change its source port later: of a TCP connection to ``tcp_port`` of the destination if that is
    given, else of UDP to port 4791. ``held_source_port`` is a port that it assigned before and that is to stay.
    """

    source: Nic
    destination: Nic
    size_bytes: int
    offset_s: float = 0.0
    five_tuple: FiveTuple | None = None
    held_source_port: int | None = None
    tcp_port: int | None = None

    def __post_init__(self) -> None:
        # Jobs make very many of them, so what is right is found quickly.
        if not isinstance(self.source, Nic) or not isinstance(self.destination, Nic):
            checks.instance("source", self.source, Nic)
            checks.instance("destination", self.destination, Nic)
        if not _is_int(self.size_bytes, MAX_SIZE_BYTES):
            _set(self, "size_bytes", checks.integer("size_bytes", self.size_bytes, 0, MAX_SIZE_BYTES))
        if type(self.offset_s) is not float or not 0.0 <= self.offset_s < math.inf:
            _set(self, "offset_s", checks.number("offset_s", self.offset_s))
        if self.five_tuple is not None:
            checks.instance("five_tuple", self.five_tuple, FiveTuple)
        if self.held_source_port is not None:
            _set(self, "held_source_port", checks.integer("held_source_port", self.held_source_port, 0, MAX_PORT))
        if self.tcp_port is not None:
            _set(self, "tcp_port", checks.integer("tcp_port", self.tcp_port, 1, MAX_PORT))
            if self.five_tuple is not None:
                raise ValueError("tcp_port: expected none beside a five_tuple, which has the port already")


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """At least one flow: flows whose ideal finish times are related (an EchelonFlow). Its name is unique in the job."""

    name: str
    flows: tuple[Flow, ...]

    def __post_init__(self) -> None:
        checks.name("name", self.name)
        _set(self, "flows", checks.items("flows", self.flows, Flow))
        if not self.flows:
            raise ValueError("flows: expected at least one flow")


@dataclass(frozen=True, slots=True)
class Path:
    """A path through the fabric: its nodes, hosts included, and for every hop which of the parallel links it takes."""

    nodes: tuple[str, ...]
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a flow group that can send less than it registered sends in an iteration, all flows together.

    ``reason`` says why so much, in words for people.
    """

    size_bytes: int
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "size_bytes", checks.integer("size_bytes", self.size_bytes, 0, MAX_SIZE_BYTES))
        checks.instance("reason", self.reason, str)


@dataclass(frozen=True, slots=True)
class GroupInstance:
    """The instance of a flow group in an iteration: started, or ended when all of its flows have arrived.

    ``sent`` is what it sends, where the job can compress that; None: as the instance before it.
    """

    iteration: int
    has_ended: bool = False
    sent: Sent | None = None

    def __post_init__(self) -> None:
        _set(self, "iteration", checks.integer("iteration", self.iteration, 0, MAX_ITERATION))
        checks.instance("has_ended", self.has_ended, bool)
        if self.sent is not None:
            checks.instance("sent", self.sent, Sent)


@dataclass(frozen=True, slots=True)
class FlowDirective:
    """How to send one flow of a group: its path, its level (7 the most urgent), its order at the host (0 first).

    The host sends it from ``source_port``, which changes only if the controller assigned it. ``rate_bps`` is what the
    flow may count on while its group sends; None: the group sends what was registered, or the controller is too old.
    """

    flow_group: str
    flow: int
    path: Path
    level: int
    order: int
    source_port: int
    rate_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Directives:
    """A job's part of one plan.

    ``time_shift_s`` is the start of its iterations after its arrival, modulo whole iterations (``StartShift``); None:
    start whenever possible. ``slacks_s`` has, by flow group that can send less than registered, how long its last
    transfer may take before computation waits for it.
    """

    plan_number: int
    time_shift_s: float | None
    flows: tuple[FlowDirective, ...]
    slacks_s: Mapping[str, float] = field(default_factory=dict)


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
