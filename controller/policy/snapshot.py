"""Snapshot: everything a policy may know, as immutable data.

A policy is a pure function ``Snapshot -> Plan``: no I/O, no clock, no randomness but ``Snapshot.seed``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from controller.policy.flow_arrays import A_BIT_BYTES, FlowArrays, LinkArray
from controller.policy.job_checks import check_job
from controller.policy.windows import Windows
from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

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


class Links(tuple[LinkState, ...]):
    """All links of a fabric, and what there is of them as arrays, made once: a fabric keeps its links for long."""

    @cached_property
    def rates_bps(self) -> npt.NDArray[np.float64]:
        """Rate of every link; read-only."""
        return _read_only(np.array([link.rate_bps for link in self], dtype=np.float64))

    @cached_property
    def has_levels(self) -> npt.NDArray[np.bool_]:
        """Whether a switch queue keeps the order on each link; read-only."""
        return _read_only(np.array([link.order_keeper is OrderKeeper.SWITCH_QUEUE for link in self], dtype=np.bool_))


class FlowKey(NamedTuple):
    """Names a template flow: job, flow group, position in the group.

    A tuple, as it is looked up for every flow of every decision.
    """

    job: str
    group: str
    flow: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A template flow: what one iteration sends on one connection.

    ``offset_s`` is the ideal finish relative to the group's reference time. ``candidates`` are the paths that the
    fabric's ECMP can give it, ``hashed_path`` the one that the hash gives it when nobody steers. ``host_links`` are
    those inside its hosts (PCIe), which it uses on every path. Where the controller has assigned the 5-tuple
    (``is_assigned``) it may change the source port. ``is_hash_probed``: probes have shown that ``hashed_path`` is so;
    else our hash says it.
    """

    key: FlowKey
    five_tuple: FiveTuple
    size_bytes: float
    offset_s: float
    candidates: Paths
    hashed_path: Path
    host_links: tuple[int, ...] = ()
    is_assigned: bool = False
    is_hash_probed: bool = False

    @property
    def sends(self) -> bool:
        """Whether it sends anything, a bit at least."""
        return self.size_bytes >= A_BIT_BYTES


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


@dataclass(frozen=True)
class Job:
    """A registered job. Raises ValueError, naming the job and the field, for what cannot be meant.

    Sound are a job without flows, bytes or computation, on one GPU, and with offsets in any order.
    """

    name: str
    arrival_s: float
    gpus: int
    profile: Profile
    flow_groups: tuple[FlowGroup, ...]

    def __post_init__(self) -> None:
        check_job(self)
        # Made now, so that no decision has to wait for them.
        _ = self.arrays, self.highest_link, self.windows, self.reach

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """Flows of all groups, in order."""
        return tuple(chain.from_iterable(group.flows for group in self.flow_groups))

    @cached_property
    def arrays(self) -> FlowArrays:
        """The flows to compute with."""
        return FlowArrays.of(self.flows)

    @cached_property
    def windows(self) -> Windows:
        """When the flows are released and needed within an iteration."""
        return Windows.of(self.flow_groups, self.profile)

    @cached_property
    def reach(self) -> LinkArray:
        """The links, ascending, that flows which send anything may take."""
        return self.arrays.reach

    @cached_property
    def highest_link(self) -> int:
        """The highest number of any link that a flow may take; -1 where there is none."""
        return max(
            (max(*flow.hashed_path, *flow.host_links, flow.candidates.highest_link) for flow in self.flows), default=-1
        )


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """An instance of a flow group that is under way.

    ``reference_s`` is when its head flow began. ``remaining_bytes`` is what is left of it, as far as anybody knows:
    what jobs tell says no more than that it is not over, which leaves all bytes of the template.
    """

    job: str
    group: str
    iteration: int
    reference_s: float
    remaining_bytes: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that one decision is made from; jobs stand in order of their names, open groups in that of jobs."""

    time_s: float
    links: Links
    jobs: tuple[Job, ...]
    num_levels: int = 8
    open_groups: tuple[OpenGroup, ...] = ()
    loads_bps: Mapping[int, float] = field(default_factory=dict)
    previous: "Plan | None" = None
    seed: int = 1


_A = TypeVar("_A", bound=np.ndarray[Any, Any])


def _read_only(array: _A) -> _A:
    array.flags.writeable = False
    return array
