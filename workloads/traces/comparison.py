"""Comparison of a trace's figures with those published about the Lingjun dataset."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from workloads.traces import published
from workloads.traces.statistics import TraceStatistics


class Unit(Enum):
    """Unit of a figure."""

    NUMBER = auto()
    SHARE = auto()
    MINUTES = auto()


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of a trace beside the published one; None where there is none."""

    name: str
    unit: Unit
    here: float | None
    published: float | None


_SIZES = (1, 8, 16, 32, 64, 128, 256)
_SHOWN_MODELS = 6


def compare_with_published(statistics: TraceStatistics) -> Iterator[ComparedFigure]:
    """Compare every published figure with that of a trace."""
    yield ComparedFigure("jobs", Unit.NUMBER, statistics.jobs, published.NUM_JOBS)
    yield ComparedFigure("workers", Unit.NUMBER, statistics.workers, published.NUM_WORKERS)
    yield ComparedFigure("hosts", Unit.NUMBER, statistics.hosts, published.NUM_HOSTS)
    yield ComparedFigure("racks", Unit.NUMBER, statistics.racks, sum(map(len, published.RACK_SIZES.values())))
    yield ComparedFigure("jobs with GPUs", Unit.NUMBER, statistics.gpu_jobs, published.NUM_GPU_JOBS)
    for status, count in published.STATUS.items():
        yield _share(f"status {status}", statistics.status.get(status, 0), count, statistics)
    for model, count in list(published.MODELS.items())[:_SHOWN_MODELS]:
        yield _share(f"model {model}", statistics.models.get(model, 0), count, statistics)
    for size in _SIZES:
        known = sum(jobs for gpus, jobs in published.GPUS.items() if gpus <= size) / published.NUM_GPU_JOBS
        yield ComparedFigure(f"jobs of at most {size} GPUs", Unit.SHARE, statistics.share_up_to(size), known)
    for quantile, minutes in published.DURATION_MIN.items():
        yield ComparedFigure(
            f"duration, {_named(quantile)}", Unit.MINUTES, statistics.duration_min.get(quantile), minutes
        )
    for quantile, minutes in published.QUEUE_MIN.items():
        yield ComparedFigure(
            f"wait in the queue, {_named(quantile)}", Unit.MINUTES, statistics.queue_min.get(quantile), minutes
        )
    yield ComparedFigure(
        "jobs that meet contention", Unit.SHARE, statistics.contending_share, published.CONTENDING_SHARE
    )
    yield ComparedFigure("most jobs of 8 GPUs or more at once", Unit.NUMBER, statistics.peak.jobs, published.PEAK_JOBS)
    yield ComparedFigure("their GPUs", Unit.NUMBER, statistics.peak.gpus, published.PEAK_GPUS)


def _share(name: str, jobs: int, known: int, statistics: TraceStatistics) -> ComparedFigure:
    return ComparedFigure(name, Unit.SHARE, jobs / max(statistics.jobs, 1), known / published.NUM_JOBS)


def _named(quantile: float) -> str:
    return "longest" if quantile == 1.0 else f"p{quantile * 100:.0f}"
