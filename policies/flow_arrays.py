"""The flows of one job as arrays: made once a job, as jobs change seldom and decisions are many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.flows import Flow

IntArray = npt.NDArray[np.int64]
LinkArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FlowArrays:
    """Sizes, 0 for less than a bit, and candidate paths of flows, in their order.

    The paths of a flow stand one after the other in ``links``, each ``path_length`` long, short ones filled up with
    ``NO_LINK``; ``num_links_listed`` tells how many entries are the flow's. ``host_links`` and ``num_host_links`` are
    the same of the links inside its hosts.
    """

    size_bytes: FloatArray
    links: LinkArray
    num_links_listed: IntArray
    path_length: IntArray
    host_links: LinkArray
    num_host_links: IntArray

    @classmethod
    def of(cls, flows: Sequence[Flow]) -> "FlowArrays":
        """Arrays of these flows."""
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
    def reach(self) -> LinkArray:
        """The links, ascending, that flows which send anything may take."""
        sends = self.size_bytes > 0
        links = self.links[np.repeat(sends, self.num_links_listed)]
        host_links = self.host_links[np.repeat(sends, self.num_host_links)]
        is_reached = np.zeros(max(links.max(initial=-1), host_links.max(initial=-1)) + 1, dtype=np.bool_)
        is_reached[links[links >= 0]] = True
        is_reached[host_links] = True
        return np.flatnonzero(is_reached).astype(np.int32)
