"""Flow groups under way, for policies that reorder them at group or flow events (``Tiers.GROUPS``).

A Plan orders jobs at job events. A policy with ideal rates orders what is under way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from policies.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    # The allocators import numba, which takes longer than a decision.
    from policies.rates.network import Network, Order


@dataclass(frozen=True, slots=True, eq=False)
class OpenFlows:
    """The flows of the open groups, on their network.

    A group is complete: its tier includes flows that it has not released yet.

    Attributes:
        network: The links, and the links that each flow crosses.
        order: The flows by group; tier n is group n.
        remaining_bytes: By flow, what is left to send.
        due_s: By flow, in how many seconds it must end so that its group gets no later than it is. 0 for all flows
            where the allocator does not use it; ``Allocator.ECHELON_MADD`` and a policy's own allocators do.
    """

    network: "Network"
    order: "Order"
    remaining_bytes: FloatArray
    due_s: FloatArray


class OpenGroups:
    """Flow groups under way, each by its number.

    Attributes:
        started_s: By group, when it began.
        flows: The flows of the groups; None in a trace of coflows, which has no paths.
    """

    def __init__(
        self, started_s: FloatArray, seconds_by_link: Callable[[], "csr_array"], flows: OpenFlows | None = None
    ) -> None:
        self.started_s = started_s
        self.flows = flows
        self._seconds_by_link = seconds_by_link

    @cached_property
    def seconds_by_link(self) -> "csr_array":
        """Seconds for which what is left of each group (row) occupies each link (column)."""
        return self._seconds_by_link()


GroupOrder = Callable[[OpenGroups], IntArray]
"""A function that returns the numbers of the groups, the most urgent first."""
