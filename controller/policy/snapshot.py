"""Snapshot: everything a policy may know, as immutable data.

A policy is a pure function ``Snapshot -> Plan``: no I/O, no clock, no randomness but ``Snapshot.seed``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from topologies.addressing import FiveTuple
from topologies.fabric import Path

if TYPE_CHECKING:
    from controller.policy.plan import Plan


class OrderKeeper(StrEnum):
    """What keeps the order of flows on a link."""

    SWITCH_QUEUE = "switch queue"
    HOST = "host"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class LinkState:
    """One direction of a cable, at the index its number in the fabric gives."""

    rate_bps: float
    order_keeper: OrderKeeper


@dataclass(frozen=True, slots=True, order=True)
class FlowKey:
    """Names a template flow: job, flow group, position in the group."""

    job: str
    group: str
    flow: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A template flow: what one iteration sends on one connection.

    ``offset_s`` is the ideal finish relative to the group's reference time. ``candidates`` are the paths that the
    fabric's ECMP can give it, ``hashed_path`` the one that the hash gives it when nobody steers. ``host_links`` are
    those inside its hosts (PCIe), which it uses on every path. Where the controller has assigned the 5-tuple
    (``is_assigned``) it may change the source port.
    """

    key: FlowKey
    five_tuple: FiveTuple
    size_bytes: float
    offset_s: float
    candidates: tuple[Path, ...]
    hashed_path: Path
    host_links: tuple[int, ...] = ()
    is_assigned: bool = False


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """An EchelonFlow: flows of one job whose ideal finish times an arrangement relates."""

    name: str
    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job computes in one iteration.

    ``compute_s`` is the compute phase; communication starts when the fraction ``comm_start`` of it is done.
    ``work`` is W: GPU-seconds of computation per iteration over all GPUs (or FLOPs, if every job gives FLOPs).
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True, slots=True)
class Job:
    """A registered job."""

    name: str
    arrival_s: float
    gpus: int
    profile: Profile
    flow_groups: tuple[FlowGroup, ...]

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Flows of all groups, in order."""
        return tuple(flow for group in self.flow_groups for flow in group.flows)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that one decision is made from; jobs stand in order of their names."""

    time_s: float
    links: tuple[LinkState, ...]
    jobs: tuple[Job, ...]
    num_levels: int = 8
    loads_bps: Mapping[int, float] = field(default_factory=dict)
    previous: "Plan | None" = None
    seed: int = 1
