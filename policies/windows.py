"""When the flows of a job are released and needed within an iteration, as far as a Snapshot tells.

The first flow is released when the fraction ``comm_start`` of the computation is done, and the last one of every group
is needed when all of it is done: a job tells no more of the times of its groups than that, and how the ideal finishes
of a group's flows lie to each other. So every flow of a group whose offsets reach from 0 to D has a window of the same
length, ``compute_s (1 - comm_start) - D``, and those of an offset d are released d after the first ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from policies.flow_arrays import FloatArray, IntArray
from policies.flows import FlowGroup
from policies.profile import Profile

MOST_TRANSFERS = 8
"""Of one group; flows of neighbouring offsets are taken together where there are more."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The transfers of one job: flows of one group and offset, released and needed together.

    ``transfer_of`` is by flow, in the order of the job's flows; ``group_of``, ``release_s`` and ``due_s`` are by
    transfer, groups in order. Times count from the start of the iteration, stalls left out, and lie within
    ``compute_s``.
    """

    transfer_of: IntArray
    group_of: IntArray
    release_s: FloatArray
    due_s: FloatArray

    @property
    def is_staggered(self) -> bool:
        """Whether flows of some group are released and needed one after the other."""
        return len(self.group_of) > len(np.unique(self.group_of))

    @classmethod
    def of(cls, groups: Iterable[FlowGroup], profile: Profile) -> Self:
        """The transfers of these groups; an empty group has none."""
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
            stages = min(len(distinct), MOST_TRANSFERS)
            stage_of = np.arange(len(distinct)) * stages // len(distinct)
            window_s = max(profile.compute_s - ready_s - float(distinct[-1]), 0.0)
            transfers += (len(group_of) + stage_of[place]).tolist()
            group_of += [number] * stages
            for stage in range(stages):
                of_stage = distinct[stage_of == stage]
                release_s.append(min(ready_s + float(of_stage[0]), profile.compute_s))
                due_s.append(min(ready_s + float(of_stage[-1]) + window_s, profile.compute_s))
        return cls(np.array(transfers, np.int64), np.array(group_of, np.int64), np.array(release_s), np.array(due_s))
