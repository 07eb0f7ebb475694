"""Snapshot: everything a policy may know, as immutable data.

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
from policies.plan import Plan


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
    """The state that one decision is made from; jobs stand in order of their names, open groups in that of jobs.

    While a job is measured (``profiled``) it has the hardware's level ``num_levels`` for itself, above those that
    policies have. ``foreign_loads_bps`` is what links carry, by their numbers, beside what the jobs send, as far as
    that was measured; nothing for all others.
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

    @property
    def foreign_utilisation(self) -> npt.NDArray[np.float64]:
        """The foreign load of every link over its rate."""
        shares = np.zeros(len(self.links))
        for link, load_bps in self.foreign_loads_bps.items():
            shares[link] = load_bps / self.links[link].rate_bps
        return shares


_A = TypeVar("_A", bound=np.ndarray[Any, Any])


def _read_only(array: _A) -> _A:
    array.flags.writeable = False
    return array
