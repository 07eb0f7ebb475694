"""Array types, and the flows of one job as arrays.

Jobs change seldom and decisions are many, so a job computes its arrays once (``Job.arrays``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.flows import Flow

IntArray = npt.NDArray[np.int64]
LinkArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class FlowArrays:
    """Sizes and candidate paths of flows, in the order of the flows.

    Attributes:
        size_bytes: By flow; 0 for a flow of less than one bit.
        links: The candidate paths of all flows, one path after another. Every path of a flow has ``path_length``
            entries; ``NO_LINK`` fills up the short ones.
        num_links_listed: By flow, the number of its entries in ``links``.
        path_length: By flow, the length of its longest candidate.
        host_links: The links inside the hosts of each flow, one flow after another.
        num_host_links: By flow, the number of its entries in ``host_links``.
    """

    size_bytes: FloatArray
    links: LinkArray
    num_links_listed: IntArray
    path_length: IntArray
    host_links: LinkArray
    num_host_links: IntArray

    @classmethod
    def of(cls, flows: Sequence[Flow]) -> "FlowArrays":
        """Return the arrays of these flows."""
        candidates = [flow.candidates.links for flow in flows]
        return cls(
            np.array([flow.size_bytes if flow.sends else 0.0 for flow in flows], dtype=np.float64),
            np.concatenate([np.empty(0, np.int32), *(links.ravel() for links in candidates)]),
            np.array([links.size for links in candidates], dtype=np.int64),
            np.array([links.shape[1] for links in candidates], dtype=np.int64),
            np.array([link for flow in flows for link in flow.host_links], dtype=np.int32),
            np.array([len(flow.host_links) for flow in flows], dtype=np.int64),
        )

    @property
    def reachable_links(self) -> LinkArray:
        """The links, ascending, on the candidate paths of flows that send anything."""
        sends = self.size_bytes > 0
        links = self.links[np.repeat(sends, self.num_links_listed)]
        host_links = self.host_links[np.repeat(sends, self.num_host_links)]
        is_reached = np.zeros(max(links.max(initial=-1), host_links.max(initial=-1)) + 1, dtype=np.bool_)
        is_reached[links[links >= 0]] = True
        is_reached[host_links] = True
        return np.flatnonzero(is_reached).astype(np.int32)
