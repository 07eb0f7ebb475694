"""Enforcement: how a simulation sets rates under a policy, by which allocator, between whom, and how often.

A Plan holds no rates. Switches enforce it by levels: they decide at job events and share fairly inside a level. A
simulator may also give a policy the rates of its own paper, at its own cadence.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # The allocators import numba, which takes longer than a decision.
    from policies.rates.network import FloatArray, Network, Order


class Allocator(StrEnum):
    """A rate allocator of ``policies.rates``."""

    MAX_MIN = "max-min"
    MADD = "madd"
    ECHELON_MADD = "echelon-madd"
    ORDER_GREEDY = "order-greedy"


class RateAllocator(Protocol):
    """A policy's own rate allocator: a function that returns the rate of every flow of the order.

    It must give no link more than its capacity. The simulator calls it for the flows that an event can affect: all that
    are connected to it by shared links or shared tiers.
    """

    def __call__(
        self,
        network: "Network",
        order: "Order",
        weights: "FloatArray",
        remaining_bytes: "FloatArray",
        due_s: "FloatArray",
        /,
    ) -> "FloatArray":
        """Return the rate in bit/s of each flow of ``order.flows``, in that order.

        Args:
            network: Links with their capacities, and the links that every flow crosses.
            order: The active flows in tiers, most urgent first.
            weights: By flow number, how many flows of one size and path it stands for.
            remaining_bytes: By flow number, what is left to send.
            due_s: By flow number, seconds until the flow is due; 0 where groups are not ordered (``Tiers.GROUPS``).
        """
        ...


class Cadence(StrEnum):
    """What makes a policy decide again: a job comes or goes, a flow group begins or ends, or a flow does."""

    JOB_EVENT = "job event"
    GROUP_EVENT = "group event"
    FLOW_EVENT = "flow event"


class Tiers(StrEnum):
    """What an allocator's tiers are: levels, jobs in the Plan's order, or open flow groups in the policy's order."""

    LEVELS = "levels"
    JOBS = "jobs"
    GROUPS = "groups"


class Enforcement(StrEnum):
    """What a run assumes about the network: the levels that switches have, or any rates that the policy asks for."""

    LEVELS = "levels"
    IDEAL = "ideal"


@dataclass(frozen=True, slots=True)
class RateControl:
    """By what, between whom and how often rates are set. The defaults are what switches with levels do."""

    allocator: Allocator | RateAllocator = Allocator.MAX_MIN
    tiers: Tiers = Tiers.LEVELS
    cadence: Cadence = Cadence.JOB_EVENT


SWITCH_LEVELS = RateControl()
"""Max-min inside a level, strict priority between levels, decided at job events."""
JOB_ORDER = RateControl(tiers=Tiers.JOBS)
"""Max-min with one level for each job."""
