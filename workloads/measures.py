"""Measures of a run, computed from the records of its jobs: GPU utilisation and iteration times in a window.

An iteration that a window cuts counts by the share of its time inside: the GPU-seconds that it computes are spread
evenly over it. So no job exceeds its ideal, whichever phase of an iteration lies in the window.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from workloads.replay import Iteration, JobHistory
from workloads.scenario import Scenario

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time that is not negative."""

    from_s: float
    to_s: float

    @property
    def length_s(self) -> float:
        """Duration of the window."""
        return self.to_s - self.from_s

    def overlap_s(self, start_s: float, end_s: float) -> float:
        """Return the seconds of [start_s, end_s) inside the window."""
        return max(0.0, min(end_s, self.to_s) - max(start_s, self.from_s))


def run_window(scenario: Scenario, replays: Sequence[JobHistory]) -> Window:
    """Return the scenario's ``measure``, or the time from the first arrival to the first departure.

    A job that has failed departs too early to count; where all have failed, the last departure ends the window.

    Raises:
        ValueError: There is no ``measure`` and no job has departed.
    """
    if scenario.measure is not None:
        return Window(scenario.measure.from_s, scenario.measure.to_s)
    departed = [(replay.departed_s, replay.failure) for replay in replays if replay.departed_s is not None]
    if not departed:
        raise ValueError("no job has departed, so that the measurement window has no end")
    in_time = [departed_s for departed_s, failure in departed if failure is None]
    to_s = min(in_time) if in_time else max(departed_s for departed_s, _ in departed)
    return Window(min(replay.job.specification.arrival_s for replay in replays), to_s)


def job_windows(scenario: Scenario, replays: Sequence[JobHistory], ideal_s: Mapping[str, float]) -> dict[str, Window]:
    """Return each job's part of the window: after its arrival and warm-up, until its departure.

    A warm-up lasts as long as its iterations take in the ideal, whatever they take in the run; otherwise a job would
    count the less the longer a policy lets it wait. A warm-up that leaves nothing of a job's part is left out. The
    window of a job that is never in it has length zero. Jobs must have departed or been withdrawn; otherwise their last
    activity is missing from their records.

    Args:
        scenario: The scenario.
        replays: The jobs of a run that is over.
        ideal_s: By job, its ideal iteration time.
    """
    window = run_window(scenario, replays)
    return {
        replay.job.name: _job_window(window, replay, scenario.warm_up_iterations * ideal_s[replay.job.name])
        for replay in replays
    }


def _job_window(window: Window, replay: JobHistory, warm_up_s: float) -> Window:
    arrival_s = replay.job.specification.arrival_s
    from_s = max(window.from_s, arrival_s)
    to_s = window.to_s if replay.departed_s is None else min(window.to_s, replay.departed_s)
    warm_s = max(from_s, arrival_s + warm_up_s)
    return Window(min(from_s if warm_s >= to_s else warm_s, to_s), to_s)


def allocated_gpu_seconds(replays: Sequence[JobHistory], windows: Mapping[str, Window]) -> dict[str, float]:
    """Return the GPU-seconds that each job holds inside its window."""
    return {replay.job.name: replay.job.gpus * windows[replay.job.name].length_s for replay in replays}


def computing_gpu_seconds(replays: Sequence[JobHistory], windows: Mapping[str, Window]) -> dict[str, float]:
    """Return the GPU-seconds of each job inside its window, those of an iteration spread evenly over it."""
    return {replay.job.name: _spread_gpu_seconds(replay, windows[replay.job.name]) for replay in replays}


def _spread_gpu_seconds(replay: JobHistory, window: Window) -> float:
    computed: defaultdict[int, float] = defaultdict(float)
    for interval in replay.computing:
        computed[interval.iteration] += len(interval.hosts) * interval.share * (interval.end_s - interval.start_s)
    return replay.job.specification.gpus_per_host * sum(
        computed[iteration.number] * share for iteration, share in _shares_inside(replay, window)
    )


def _shares_inside(replay: JobHistory, window: Window) -> list[tuple[Iteration, float]]:
    """Return the iterations of a job with the share of their time inside a window, also one that was withdrawn."""
    iterations = list(replay.iterations)
    last_s = iterations[-1].end_s if iterations else replay.job.specification.arrival_s
    if replay.departed_s is not None and replay.departed_s > last_s:
        iterations.append(Iteration(len(iterations), last_s, replay.departed_s))
    return [
        (iteration, window.overlap_s(iteration.start_s, iteration.end_s) / (iteration.end_s - iteration.start_s))
        for iteration in iterations
    ]


def gpu_utilisation(replays: Sequence[JobHistory], windows: Mapping[str, Window]) -> float:
    """Return computing over allocated GPU-seconds. Raises ValueError if no GPU is allocated in the windows."""
    allocated = sum(allocated_gpu_seconds(replays, windows).values())
    if not allocated:
        raise ValueError("no job holds a GPU inside the measurement window")
    return sum(computing_gpu_seconds(replays, windows).values()) / allocated


def stretches(window: Window, moments: Iterable[float]) -> list[Window]:
    """Cut a window at the moments inside it; no part is empty."""
    cuts = sorted({moment for moment in moments if window.from_s < moment < window.to_s})
    return [Window(*ends) for ends in pairwise((window.from_s, *cuts, window.to_s)) if ends[0] < ends[1]]


def utilisations_in(
    parts: Iterable[Window], replays: Sequence[JobHistory], windows: Mapping[str, Window]
) -> Iterator[float | None]:
    """Yield the GPU utilisation in each part of the jobs' windows as it happened; None if no GPU is allocated there.

    No iteration is spread: a part may be shorter than one.
    """
    computing = {replay.job.name: _computing(replay) for replay in replays}
    for part in parts:
        clipped = {name: _common(own, part) for name, own in windows.items()}
        allocated = sum(allocated_gpu_seconds(replays, clipped).values())
        computed = 0.0
        for name, (start_s, end_s, gpus) in computing.items():
            own = clipped[name]
            inside_s = np.minimum(end_s, own.to_s) - np.maximum(start_s, own.from_s)
            computed += float(np.maximum(inside_s, 0.0) @ gpus)
        yield computed / allocated if allocated else None


def _computing(replay: JobHistory) -> FloatArray:
    """Return when a job's computations started and ended, and on how many GPUs each ran."""
    per_host = replay.job.specification.gpus_per_host
    rows = [
        (interval.start_s, interval.end_s, per_host * len(interval.hosts) * interval.share)
        for interval in replay.computing
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 3).T


def _common(own: Window, part: Window) -> Window:
    from_s = min(max(own.from_s, part.from_s), part.to_s)
    return Window(from_s, max(from_s, min(own.to_s, part.to_s)))


def mean_iteration_time_s(replay: JobHistory, window: Window) -> float | None:
    """Return the mean over iterations that start and end inside the window; None if there is none."""
    times = [
        iteration.end_s - iteration.start_s
        for iteration in replay.iterations
        if window.from_s <= iteration.start_s and iteration.end_s <= window.to_s
    ]
    return sum(times) / len(times) if times else None


def speed(replay: JobHistory, window: Window, ideal_s: float) -> float | None:
    """Return a job's iteration rate inside its window over that of the ideal: 1 / slowdown; None for an empty window.

    It is 0 for a starved job: the window is long enough for an iteration of the ideal, and none ends inside.
    """
    if window.length_s <= 0:
        return None
    ended = any(window.from_s < iteration.end_s <= window.to_s for iteration in replay.iterations)
    if not ended and window.length_s >= ideal_s:
        return 0.0
    return sum(share for _, share in _shares_inside(replay, window)) * ideal_s / window.length_s
