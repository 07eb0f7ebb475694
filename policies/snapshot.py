"""Snapshot: everything that a policy may know, as immutable data.

A policy is a pure function ``Snapshot -> Plan``: no I/O, no clock, no randomness but ``Snapshot.seed``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from policies.job import Job
from policies.pins import Pin
from policies.plan import Plan


class OrderKeeper(StrEnum):
    """What keeps the order of flows on a link."""

    SWITCH_QUEUE = "switch queue"
    HOST = "host"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class LinkState:
    """One direction of a cable, at the index that its number in the fabric gives."""

    rate_bps: float
    order_keeper: OrderKeeper


class Links(tuple[LinkState, ...]):
    """All links of a fabric, also as arrays.

    The arrays are computed once, since a fabric keeps its links for long.
    """

    @cached_property
    def rates_bps(self) -> npt.NDArray[np.float64]:
        """By link, its rate; read-only."""
        return _read_only(np.array([link.rate_bps for link in self], dtype=np.float64))

    @cached_property
    def has_levels(self) -> npt.NDArray[np.bool_]:
        """By link, whether a switch queue keeps the order there; read-only."""
        return _read_only(np.array([link.order_keeper is OrderKeeper.SWITCH_QUEUE for link in self], dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """An instance of a flow group that is under way.

    Attributes:
        job: The job.
        group: The flow group.
        iteration: Which iteration it belongs to.
        reference_s: The time at which its head flow began.
        remaining_bytes: What is left to send, as far as known. Jobs report only that a group is not over, and then this
            is all bytes of the template.
    """

    job: str
    group: str
    iteration: int
    reference_s: float
    remaining_bytes: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that one decision is made from.

    Attributes:
        time_s: The time of the decision.
        links: All links of the fabric.
        jobs: The jobs, in order of their names.
        num_levels: How many levels policies may use, 0 to ``num_levels - 1``, the highest the most urgent.
        open_groups: Flow groups under way, in order of the jobs; empty at job events.
        foreign_loads_bps: By link number, the measured load that does not come from the jobs; links not listed have
            none.
        previous: The Plan in force.
        seed: Seeds all randomness of the policy.
        profiled: The name of the job that is being measured. It has level ``num_levels`` for itself, above those of the
            policy.
        pins: What operators have decided by hand. Whoever carries out a Plan applies them to it, after the policy.
    """

    time_s: float
    links: Links
    jobs: tuple[Job, ...]
    num_levels: int = 8
    open_groups: tuple[OpenGroup, ...] = ()
    foreign_loads_bps: Mapping[int, float] = field(default_factory=dict)
    previous: Plan | None = None
    seed: int = 1
    profiled: str | None = None
    pins: tuple[Pin, ...] = ()

    @property
    def foreign_utilisation(self) -> npt.NDArray[np.float64]:
        """By link, the foreign load over the rate."""
        shares = np.zeros(len(self.links))
        for link, load_bps in self.foreign_loads_bps.items():
            shares[link] = load_bps / self.links[link].rate_bps
        return shares


_A = TypeVar("_A", bound=np.ndarray[Any, Any])


def _read_only(array: _A) -> _A:
    array.flags.writeable = False
    return array
