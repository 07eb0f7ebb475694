"""Template flows: what a job sends in one iteration, in flow groups."""

from dataclasses import dataclass
from typing import NamedTuple

from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

MIN_SIZE_BYTES = 1 / 8
"""One bit. A smaller flow counts as empty: such sizes give transfer times too short to compute with."""


class FlowKey(NamedTuple):
    """The name of a template flow: its job, its flow group, and its position in the group.

    A tuple, because every decision looks it up for every flow.
    """

    job: str
    group: str
    flow: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A template flow: what one iteration sends on one connection.

    Attributes:
        key: The name of the flow.
        five_tuple: Addresses, protocol and ports of the connection.
        size_bytes: What one iteration sends.
        offset_s: The ideal finish time, relative to the group's reference time.
        candidates: The paths that the fabric's ECMP can give to the flow.
        hashed_path: The path that the fabric's hash gives to the flow when nobody steers it.
        host_links: The links inside its hosts (PCIe); the flow uses them on every path.
        is_assigned: The controller has assigned the 5-tuple and may change its source port.
        is_hash_probed: Probes have confirmed ``hashed_path``; otherwise it comes from our copy of the hash.
        is_cut_off: Failures have left no path. The paths here are then those of the fabric without failures.
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
        """Whether the flow sends anything, one bit at least."""
        return self.size_bytes >= MIN_SIZE_BYTES


@dataclass(frozen=True, slots=True)
class Uncompressed:
    """A flow group that can be compressed, as it would be sent if it were not.

    Attributes:
        size_bytes: What its flows would send together.
        window_s: For how long computation goes on, all in all, from the release of one of its transfers on until it
            waits for it.
        slack_s: That time for the last transfer alone.
    """

    size_bytes: float
    window_s: float
    slack_s: float


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """An EchelonFlow: flows of one job whose ideal finish times an arrangement relates.

    Attributes:
        name: Its name.
        flows: Its flows, with what they send now.
        uncompressed: What they would send if the job compressed nothing; None: it cannot.
    """

    name: str
    flows: tuple[Flow, ...]
    uncompressed: Uncompressed | None = None
