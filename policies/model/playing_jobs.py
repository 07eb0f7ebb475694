"""Jobs that play their task graphs on shared links: how fast each is on given paths and levels.

Flows share links max-min fairly inside a tier, in strict priority between tiers, as in ``simulator.fluid``; a job's
tasks begin as soon as those they wait for have ended. Time is exact to the picosecond.

Example::

    playing = PlayingJobs([graph_of_gpt, graph_of_bert], begins_s=np.zeros(2), bundles_of=[[0], [1, 2]], ...)
    playing.run(until_s=20.0)
    playing.iterations_between(5.0, 20.0)
"""

from collections.abc import Sequence

import numpy as np

from policies.model.arrays import Layout, Scratch, Sending
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.model.rate_cache import RateCache
from policies.model.task_kernel import play
from policies.model.task_table import Progress, TaskTable
from policies.rates.network import FloatArray, IntArray
from policies.task_graph import TaskGraph, Transfer

_KEPT_ITERATIONS = 4_096


class PlayingJobs:
    """Jobs on one network; time continues from call to call.

    Args:
        graphs: What one iteration of each job does.
        begins_s: By job, when its first iteration begins.
        num_bundles: By transfer, job after job and task after task, how many bundles it sends.
        size_bytes: By bundle, in the same order, what it sends altogether. Bundles of nothing are left out.
        bundles: Their paths, tiers, weights and latencies.
        jitter: The relative standard deviation of computation times, the same draws every time.

    Raises:
        ValueError: The bundles do not fit the transfers; or a size is not positive and finite, the message names it.
    """

    def __init__(
        self,
        graphs: Sequence[TaskGraph],
        begins_s: FloatArray,
        num_bundles: IntArray,
        size_bytes: FloatArray,
        bundles: Bundles,
        jitter: float = 0.0,
    ) -> None:
        tasks = [task for graph in graphs for task in graph.tasks]
        sends = np.array([isinstance(task, Transfer) for task in tasks])
        if len(num_bundles) != sends.sum() or num_bundles.sum() != len(size_bytes):
            raise ValueError(f"expected the bundles of {sends.sum()} transfers, got {len(num_bundles)}")
        if not (sound := (size_bytes > 0) & (size_bytes < np.inf)).all():
            bundle = int((~sound).argmax())
            raise ValueError(f"bundle {bundle}: it must send a positive number of bytes, not {size_bytes[bundle]}")
        self._tasks = TaskTable.of(graphs, jitter)
        self._begins_ps = np.rint(begins_s * PS_PER_S).astype(np.int64)
        self._num_bundles = np.zeros(len(tasks), dtype=np.int64)
        self._num_bundles[sends] = num_bundles
        self._size_bytes = size_bytes
        self._cache = RateCache.of(len(size_bytes))
        self.restart(bundles)

    def restart(self, bundles: Bundles) -> None:
        """Restart at time 0 with these paths, tiers, weights and latencies. Raises ValueError as the class does."""
        if bundles.network.num_flows != len(self._size_bytes):
            raise ValueError(f"expected {len(self._size_bytes)} bundles, got {bundles.network.num_flows}")
        self.now_ps = 0
        self._progress = Progress.of(self._tasks, self._begins_ps)
        self._ended_ps = np.full((len(self._begins_ps), _KEPT_ITERATIONS), NEVER_PS)
        self._layout = Layout.of(self._num_bundles, self._size_bytes, bundles)
        self._sending = Sending.of(len(self._size_bytes))
        self._scratch = Scratch.of(bundles.network)
        self._cache.forget()

    def run(self, until_s: float) -> None:
        """Run until a time, or until nothing can happen any more, as on links without capacity."""
        arrays = self._tasks, self._progress, self._layout, self._sending, self._scratch, self._cache
        self.now_ps = play(*arrays, self.now_ps, round(until_s * PS_PER_S), self._ended_ps)

    @property
    def num_bundles(self) -> int:
        """How many bundles there are."""
        return len(self._size_bytes)

    @property
    def steps(self) -> int:
        """How many rates have been computed, events counting as two: a measure of time that is the same everywhere."""
        return int(self._progress.counts[1])

    @property
    def iterations(self) -> IntArray:
        """By job, the iterations that it has completed."""
        return self._progress.iterations.copy()

    def ends_s(self, job: int) -> FloatArray:
        """When the iterations of a job ended. Raises ValueError where these are too many to be kept."""
        if self._progress.iterations[job] > _KEPT_ITERATIONS:
            raise ValueError(f"job {job}: the ends of {_KEPT_ITERATIONS:,} iterations are kept, and it has done more")
        return np.asarray(self._ended_ps[job, : self._progress.iterations[job]] / PS_PER_S)

    def task_ends_s(self, job: int) -> FloatArray:
        """By task of a job, when it ended last; 0 for one that has never ended."""
        first, last = self._tasks.first_task[job : job + 2]
        ends_ps = self._progress.ends_ps[first:last]
        return np.where(ends_ps <= self.now_ps, ends_ps, 0) / PS_PER_S

    def iterations_between(self, from_s: float, to_s: float) -> FloatArray:
        """By job, its iterations in a window, each by the share of its time inside.

        One that had not ended by ``to_s`` counts as if it took as long as the one before, or as long as it has taken
        already.
        """
        counts = np.zeros(len(self._begins_ps))
        for job, begin_ps in enumerate(self._begins_ps.tolist()):
            ends_s = self.ends_s(job)
            edges_s = np.concatenate(([begin_ps / PS_PER_S], ends_s))
            times_s = np.diff(edges_s)
            inside_s = np.minimum(ends_s, to_s) - np.maximum(edges_s[:-1], from_s)
            counts[job] = (np.maximum(inside_s, 0.0) / times_s).sum()
            open_s = to_s - max(edges_s[-1], from_s)
            if open_s > 0 and len(times_s):
                counts[job] += open_s / max(times_s[-1], to_s - edges_s[-1])
        return counts
