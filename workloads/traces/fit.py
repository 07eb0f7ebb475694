"""A trace's figures beside those published of the Lingjun dataset."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from workloads.traces import published
from workloads.traces.statistics import TraceStatistics


class Unit(Enum):
    """What a figure counts."""

    NUMBER = auto()
    SHARE = auto()
    MINUTES = auto()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a trace, and the published one, None where there is none."""

    name: str
    unit: Unit
    here: float | None
    published: float | None


_SIZES = (1, 8, 16, 32, 64, 128, 256)
_SHOWN_MODELS = 6


def figures(statistics: TraceStatistics) -> Iterator[Figure]:
    """The figures that were published, one after the other."""
    yield Figure("jobs", Unit.NUMBER, statistics.jobs, published.NUM_JOBS)
    yield Figure("workers", Unit.NUMBER, statistics.workers, published.NUM_WORKERS)
    yield Figure("hosts", Unit.NUMBER, statistics.hosts, published.NUM_HOSTS)
    yield Figure("racks", Unit.NUMBER, statistics.racks, sum(map(len, published.RACK_SIZES.values())))
    yield Figure("jobs with GPUs", Unit.NUMBER, statistics.gpu_jobs, published.NUM_GPU_JOBS)
    for status, count in published.STATUS.items():
        yield _share(f"status {status}", statistics.status.get(status, 0), count, statistics)
    for model, count in list(published.MODELS.items())[:_SHOWN_MODELS]:
        yield _share(f"model {model}", statistics.models.get(model, 0), count, statistics)
    for size in _SIZES:
        known = sum(jobs for gpus, jobs in published.GPUS.items() if gpus <= size) / published.NUM_GPU_JOBS
        yield Figure(f"jobs of at most {size} GPUs", Unit.SHARE, statistics.share_up_to(size), known)
    for quantile, minutes in published.DURATION_MIN.items():
        yield Figure(f"duration, {_named(quantile)}", Unit.MINUTES, statistics.duration_min.get(quantile), minutes)
    for quantile, minutes in published.QUEUE_MIN.items():
        yield Figure(
            f"wait in the queue, {_named(quantile)}", Unit.MINUTES, statistics.queue_min.get(quantile), minutes
        )
    yield Figure("jobs that meet contention", Unit.SHARE, statistics.contending_share, published.CONTENDING_SHARE)
    yield Figure("most jobs of 8 GPUs or more at once", Unit.NUMBER, statistics.peak.jobs, published.PEAK_JOBS)
    yield Figure("their GPUs", Unit.NUMBER, statistics.peak.gpus, published.PEAK_GPUS)


def _share(name: str, jobs: int, known: int, statistics: TraceStatistics) -> Figure:
    return Figure(name, Unit.SHARE, jobs / max(statistics.jobs, 1), known / published.NUM_JOBS)


def _named(quantile: float) -> str:
    return "longest" if quantile == 1.0 else f"p{quantile * 100:.0f}"
