"""Registrations: what jobs ask for, what the registry makes of it, and why it may refuse."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from policies.flows import FlowKey
from policies.profile import Profile
from topologies.addressing import FiveTuple
from topologies.fabric import Nic


class RegistrationError(Exception):
    """A registration that is refused; it has changed nothing. The message names the field."""


class InvalidFieldError(RegistrationError):
    """A field does not say what it should."""


class UnknownJobError(RegistrationError):
    """The job is not registered: it never was, it deregistered, or its lease ended."""


class ConflictError(RegistrationError):
    """The name or the 5-tuple is taken by something else."""


class NotOwnerError(RegistrationError):
    """The job belongs to another client."""


class ExhaustedError(RegistrationError):
    """No source port, or no room, is left."""


class NotStoredError(RegistrationError):
    """The database has not taken it; the message says why."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as it asks to be registered; ``gpus`` counts those on all its hosts.

    Without a ``profile`` it tells nothing of its traffic either: both are measured.
    """

    name: str
    hosts: tuple[str, ...]
    gpus: int
    profile: Profile | None


@dataclass(frozen=True, slots=True)
class NicReference:
    """A NIC by its host's name and its index there."""

    host: str
    index: int


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A template flow as a job asks for it.

    Without a ``five_tuple`` the registry assigns one, with the ``held_source_port`` if that is free.
    """

    source: NicReference
    destination: NicReference
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple | None = None
    held_source_port: int | None = None


@dataclass(frozen=True, slots=True)
class FlowGroupRequest:
    """A template flow group as a job asks for it."""

    name: str
    flows: tuple[FlowRequest, ...]


@dataclass(frozen=True, slots=True)
class RegisteredFlow:
    """A template flow with its NICs and its 5-tuple, and whether the registry assigned that."""

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
    """A registered job with its flow groups, in order of registration; it belongs to who knows ``owner_token``."""

    request: JobRequest
    arrival_s: float
    owner_token: str
    flow_groups: tuple[RegisteredFlowGroup, ...] = ()

    @property
    def five_tuples(self) -> Iterator[tuple[FlowKey, FiveTuple]]:
        """The 5-tuple of every flow."""
        for group in self.flow_groups:
            for number, flow in enumerate(group.flows):
                yield FlowKey(self.request.name, group.name, number), flow.five_tuple


@dataclass(frozen=True, slots=True)
class InstanceRequest:
    """What a job tells of an iteration's instance of a flow group: that it has begun, or that it is over."""

    iteration: int
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class FlowGroupInstance:
    """The newest instance of a flow group: which iteration's, when it began (the reference time), if it is over."""

    iteration: int
    reference_s: float
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as it was stored, with the newest instances of its flow groups, and how long it had been silent."""

    job: RegisteredJob
    instances: Mapping[str, FlowGroupInstance] = field(default_factory=dict)
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobChange:
    """What becomes of a registered job; None where there is none. Its lease and its instances are those of before."""

    job: str
    before: RegisteredJob | None
    after: RegisteredJob | None
    lease_end_s: float | None = None
    told_silence_s: float = 0.0
    instances: dict[str, FlowGroupInstance] | None = None


@dataclass(frozen=True, slots=True)
class JobRestated:
    """What a job is, None where there is none, whatever was stored of it; its instances and its silence follow."""

    job: str
    stated: RegisteredJob | None


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """What becomes of the newest instance of a job's flow group; None where there was none."""

    job: str
    flow_group: str
    before: FlowGroupInstance | None
    after: FlowGroupInstance


@dataclass(frozen=True, slots=True)
class SilenceChange:
    """For how long a job has not been heard of, as the next controller is to know; 0 where that is of no account."""

    job: str
    before_s: float
    after_s: float


Change = JobChange | JobRestated | InstanceChange | SilenceChange
"""What the registry stores."""
