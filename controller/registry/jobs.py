"""Registered jobs with their flow groups, as the registry holds them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controller.registry.requests import JobRequest
from policies.flows import FlowKey
from policies.task_graph import TaskGraph
from topologies.addressing import FiveTuple
from topologies.fabric import Nic


@dataclass(frozen=True, slots=True)
class RegisteredFlow:
    """A template flow between two NICs; ``is_assigned`` says whether the registry assigned its 5-tuple."""

    source: Nic
    destination: Nic
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple
    is_assigned: bool


@dataclass(frozen=True, slots=True)
class RegisteredFlowGroup:
    """A registered template flow group."""

    name: str
    flows: tuple[RegisteredFlow, ...]


@dataclass(frozen=True, slots=True)
class RegisteredJob:
    """A registered job with its flow groups in order of registration.

    Whoever knows ``owner_token`` owns it, if he is of its ``tenant``; empty where callers have no identities. Its
    ``task_graph``, if it has told one, sends the flows of all groups, which are numbered group after group.
    """

    request: JobRequest
    arrival_s: float
    owner_token: str
    flow_groups: tuple[RegisteredFlowGroup, ...] = ()
    tenant: str = ""
    task_graph: TaskGraph | None = None

    @property
    def five_tuples(self) -> Iterator[tuple[FlowKey, FiveTuple]]:
        """The 5-tuple of every flow."""
        for group in self.flow_groups:
            for number, flow in enumerate(group.flows):
                yield FlowKey(self.request.name, group.name, number), flow.five_tuple


@dataclass(frozen=True, slots=True)
class FlowGroupInstance:
    """The newest instance of a flow group: its iteration, and when it began (the reference time)."""

    iteration: int
    reference_s: float
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as the database has it: with the newest instances of its flow groups, and how long it had been silent."""

    job: RegisteredJob
    instances: Mapping[str, FlowGroupInstance] = field(default_factory=dict)
    silent_s: float = 0.0
