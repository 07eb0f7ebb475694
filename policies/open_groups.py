"""The flow groups under way, as a policy sees them that orders them anew at group or flow events (``Tiers.GROUPS``).

At job events a policy orders jobs (its Plan). With its ideal rates it orders what is under way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from policies.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    # The allocators bring the compiler, which takes longer to import than a decision takes.
    from policies.rates.network import Network, Order


@dataclass(frozen=True, slots=True, eq=False)
class OpenFlows:
    """The flows of the open groups on their network; tier ``n`` of ``order`` is group ``n``.

    A group is known in full: flows that it has not released yet are among those of its tier. ``remaining_bytes`` and
    ``due_s`` are by flow number; ``due_s`` is in how many seconds a flow must end so that its group gets no later than
    it is, 0 for all where the allocator does not ask for it (``Allocator.ECHELON_MADD`` and one's own do).
    """

    network: "Network"
    order: "Order"
    remaining_bytes: FloatArray
    due_s: FloatArray


class OpenGroups:
    """Flow groups under way, each by its number.

    ``started_s`` is when each began. ``flows`` is None where a trace of coflows is run, which has no paths.
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
"""Returns the numbers of the groups, the most urgent first."""
