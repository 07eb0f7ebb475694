"""The requests that jobs make of the registry."""

from dataclasses import dataclass

from policies.job import Profile
from policies.task_graph import Computation
from topologies.addressing import ROCE, TCP_PROTOCOL, FiveTuple, Service


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job to be registered; ``gpus`` counts the GPUs of the job on all its hosts.

    A job without a ``profile`` describes no flows either: the controller measures both.
    """

    name: str
    hosts: tuple[str, ...]
    gpus: int
    profile: Profile | None


@dataclass(frozen=True, slots=True)
class NicReference:
    """A NIC, named by its host and its index there."""

    host: str
    index: int


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A template flow to be registered.

    Where ``five_tuple`` is None the registry assigns one, with ``held_source_port`` if that port is free: of a TCP
    connection to ``tcp_port``, or of UDP where that is None.
    """

    source: NicReference
    destination: NicReference
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple | None = None
    held_source_port: int | None = None
    tcp_port: int | None = None

    @property
    def service(self) -> Service:
        """To what an assigned 5-tuple leads: its protocol and destination port."""
        return ROCE if self.tcp_port is None else Service(TCP_PROTOCOL, self.tcp_port)


@dataclass(frozen=True, slots=True)
class FlowGroupRequest:
    """A template flow group to be registered."""

    name: str
    flows: tuple[FlowRequest, ...]


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """A transfer of a task graph: flows of a group, by their positions in it; none: all."""

    flow_group: str
    flows: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskGraphRequest:
    """What one iteration of a job does."""

    tasks: tuple[Computation | TransferRequest, ...]
    is_guessed: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What a flow group that can send less than its template says sends in an iteration, and why, in words."""

    size_bytes: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InstanceRequest:
    """A report that one iteration's instance of a flow group has begun, or has ended; ``sent`` if it compresses."""

    iteration: int
    has_ended: bool = False
    sent: Sent | None = None
