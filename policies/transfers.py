"""Release times and due times of a job's transfers within one iteration.

A transfer is the flows of one flow group that have the same ideal finish time. A job reports only how the ideal finish
times within a group lie to each other (``Flow.offset_s``), and the fraction ``comm_start`` of the computation after
which communication starts. So a job releases its first flows at ``compute_s * comm_start``, and needs the last flow of
every group when the computation ends. In a group whose offsets reach from 0 to D, every flow has a window of
``compute_s * (1 - comm_start) - D`` from release to due time, and offset d delays both by d.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.flows import FlowGroup

if TYPE_CHECKING:
    from policies.job import Profile

MAX_TRANSFERS = 8
"""Of one group. Where a group has more different offsets, neighbours form one transfer."""


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """The transfers of one job, group after group.

    Times count from the start of the iteration without its stalls, and lie between 0 and ``compute_s``.

    Attributes:
        transfer_of: By flow, in the order of ``Job.flows``, the number of its transfer.
        group_of: By transfer, the number of its flow group.
        release_s: By transfer, the time at which its flows may start.
        due_s: By transfer, the time from which computation waits for it.
    """

    transfer_of: IntArray
    group_of: IntArray
    release_s: FloatArray
    due_s: FloatArray

    @property
    def is_staggered(self) -> bool:
        """Whether some group has more than one transfer."""
        return len(self.group_of) > len(np.unique(self.group_of))

    @classmethod
    def of(cls, groups: Iterable[FlowGroup], profile: "Profile") -> Self:
        """Return the transfers of these groups; an empty group has none."""
        transfers: list[int] = []
        group_of: list[int] = []
        release_s: list[float] = []
        due_s: list[float] = []
        ready_s = profile.compute_s * profile.comm_start
        for number, group in enumerate(groups):
            if not group.flows:
                continue
            offsets = np.array([flow.offset_s for flow in group.flows])
            with np.errstate(over="ignore"):
                distinct, place = np.unique(offsets - offsets.min(), return_inverse=True)
            stages = min(len(distinct), MAX_TRANSFERS)
            stage_of = np.arange(len(distinct)) * stages // len(distinct)
            window_s = max(profile.compute_s - ready_s - float(distinct[-1]), 0.0)
            transfers += (len(group_of) + stage_of[place]).tolist()
            group_of += [number] * stages
            for stage in range(stages):
                of_stage = distinct[stage_of == stage]
                release_s.append(min(ready_s + float(of_stage[0]), profile.compute_s))
                due_s.append(min(ready_s + float(of_stage[-1]) + window_s, profile.compute_s))
        return cls(np.array(transfers, np.int64), np.array(group_of, np.int64), np.array(release_s), np.array(due_s))
