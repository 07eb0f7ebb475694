"""What a job sends in one iteration: template flows, in flow groups."""

from dataclasses import dataclass
from typing import NamedTuple

from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

A_BIT_BYTES = 1 / 8
"""Less is nothing: what cannot be sent must not make a time of which rates cannot be told."""


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
    else our hash says it. ``is_cut_off``: failures have left no path, and these are those of the whole fabric.
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
    is_cut_off: bool = False

    @property
    def sends(self) -> bool:
        """Whether it sends anything, a bit at least."""
        return self.size_bytes >= A_BIT_BYTES


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """An EchelonFlow: flows of one job whose ideal finish times an arrangement relates."""

    name: str
    flows: tuple[Flow, ...]
