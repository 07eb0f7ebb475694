"""Registrations: what jobs ask for, what the registry makes of it, and why it may refuse."""

from dataclasses import dataclass

from controller.policy.snapshot import Profile
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


class ExhaustedError(RegistrationError):
    """No source port is left to assign."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as it asks to be registered; ``gpus`` counts those on all its hosts."""

    name: str
    hosts: tuple[str, ...]
    gpus: int
    profile: Profile


@dataclass(frozen=True, slots=True)
class NicReference:
    """A NIC by its host's name and its index there."""

    host: str
    index: int


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A template flow as a job asks for it; without a ``five_tuple`` the registry assigns one."""

    source: NicReference
    destination: NicReference
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple | None = None


@dataclass(frozen=True, slots=True)
class FlowGroupRequest:
    """A template flow group as a job asks for it."""

    name: str
    flows: tuple[FlowRequest, ...]


@dataclass(frozen=True, slots=True)
class RegisteredFlow:
    """A template flow with its NICs and its 5-tuple."""

    source: Nic
    destination: Nic
    size_bytes: int
    offset_s: float
    five_tuple: FiveTuple


@dataclass(frozen=True, slots=True)
class RegisteredFlowGroup:
    """A registered template flow group."""

    name: str
    flows: tuple[RegisteredFlow, ...]


@dataclass(frozen=True, slots=True)
class RegisteredJob:
    """A registered job with its flow groups, in order of registration."""

    request: JobRequest
    arrival_s: float
    flow_groups: tuple[RegisteredFlowGroup, ...] = ()
