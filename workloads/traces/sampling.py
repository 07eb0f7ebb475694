"""Sampling of jobs for a synthetic trace from the published distributions, before they get hosts.

Models, sizes, states, durations and queue times have the published frequencies; who has which is random. Where nothing
is published, assumptions hold: durations are independent of size, except that jobs larger than 80 GPUs take the shorter
nine tenths (none of them ran at the real peak); jobs that never ran have no GPUs on record and failed or were stopped;
jobs that still run are not large.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from workloads.traces import published

LARGE_GPUS = 80
_SHORT_SHARE = 0.9

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")


class Status(StrEnum):
    """State of a job at the end of the log."""

    SUCCEEDED = "Succeeded"
    STOPPED = "Stopped"
    FAILED = "Failed"
    RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class SampledJob:
    """A job; times in minutes since the first day began. No duration: it still runs. No queue time: it never ran."""

    model: str
    gpus: int
    status: Status
    submitted_min: int
    queue_min: int | None
    duration_min: int | None


def sample_jobs(num_jobs: int, random: np.random.Generator) -> list[SampledJob]:
    """Sample jobs in order of submission."""
    kinds = _sample(_population(random), num_jobs, random)
    without_gpus = [number for number, (_, gpus) in enumerate(kinds) if not gpus]
    smaller = [number for number, (_, gpus) in enumerate(kinds) if 0 < gpus <= LARGE_GPUS]
    never_ran = {*_sample(without_gpus, min(_scaled(published.NEVER_RAN, num_jobs), len(without_gpus)), random)}
    running = {*_sample(smaller, min(_scaled(published.STATUS["Running"], num_jobs), len(smaller)), random)}
    submitted_min = _submissions_min(num_jobs, random)
    jobs = [
        SampledJob(model, gpus, Status.RUNNING, int(submitted), None, None)
        for (model, gpus), submitted in zip(kinds, submitted_min, strict=True)
    ]
    ran = [number for number in range(num_jobs) if number not in never_ran]
    for number, queue in zip(ran, _spread(published.QUEUE_MIN, len(ran), random), strict=True):
        jobs[number] = replace(jobs[number], queue_min=int(queue))
    ended = [number for number in ran if number not in running]
    durations = _spread(published.DURATION_MIN, len(ended), random)
    large = np.array([jobs[number].gpus > LARGE_GPUS for number in ended], dtype=bool)
    for number, duration in zip(ended, _shorter_for(large, durations, random), strict=True):
        jobs[number] = replace(jobs[number], duration_min=int(duration))
    for number, status in _statuses(never_ran, ended, num_jobs, random).items():
        jobs[number] = replace(jobs[number], status=status)
    return jobs


def _population(random: np.random.Generator) -> list[tuple[str, int]]:
    """Return model and GPUs of every job of the real trace; models of unknown sizes share the remaining sizes."""
    known = [
        (model, gpus)
        for model, sizes in published.GPUS_BY_MODEL.items()
        for gpus, count in sizes.items()
        for _ in range(count)
    ]
    left = Counter(published.GPUS)
    left.subtract(Counter(gpus for _, gpus in known if gpus))
    sizes = [gpus for gpus, count in left.items() for _ in range(count)]
    models = [
        model for model, count in published.MODELS.items() if model not in published.GPUS_BY_MODEL for _ in range(count)
    ]
    sizes += [0] * (len(models) - len(sizes))
    random.shuffle(sizes)
    return [*known, *zip(models, sizes, strict=True)]


def _sample(items: Sequence[T], count: int, random: np.random.Generator) -> list[T]:
    """Sample items in random order, each equally often but for a remainder."""
    drawn = [number % len(items) for number in range(count - count % len(items))] if items else []
    drawn += random.permutation(len(items))[: count - len(drawn)].tolist()
    return [items[drawn[number]] for number in random.permutation(len(drawn))]


def _scaled(count: int, num_jobs: int) -> int:
    return round(count * num_jobs / published.NUM_JOBS)


def _submissions_min(num_jobs: int, random: np.random.Generator) -> FloatArray:
    hours, counts = np.transpose(published.SUBMITTED_UP_TO)
    places = (np.arange(num_jobs) + random.random(num_jobs)) / num_jobs * counts[-1]
    minutes: FloatArray = np.floor(np.interp(places, counts, hours) * 60.0)
    return minutes


def _spread(quantiles: Mapping[float, float], count: int, random: np.random.Generator) -> FloatArray:
    """Return whole minutes at evenly spaced quantiles in random order, the logarithm interpolated linearly.

    Below the first published quantile every time is the shortest one.
    """
    places = (np.arange(count) + 0.5) / max(count, 1)
    minutes = np.rint(np.exp(np.interp(places, list(quantiles), np.log(list(quantiles.values())))))
    if count:
        minutes[-1] = quantiles[1.0]
    return random.permutation(minutes)


def _shorter_for(large: npt.NDArray[np.bool_], minutes: FloatArray, random: np.random.Generator) -> FloatArray:
    """Permute the times so that large jobs get none of the longest tenth."""
    order = np.argsort(minutes, kind="stable")
    short = order[: max(int(_SHORT_SHARE * len(order)), int(large.sum()))]
    for_large = random.permutation(short)[: int(large.sum())]
    dealt = np.empty_like(minutes)
    dealt[large] = minutes[for_large]
    dealt[~large] = random.permutation(np.delete(minutes, for_large))
    return dealt


def _statuses(
    never_ran: set[int], ended: Sequence[int], num_jobs: int, random: np.random.Generator
) -> dict[int, Status]:
    """Sample the status of every job that has ended; jobs that never ran have not succeeded."""
    num_succeeded = min(_scaled(published.STATUS["Succeeded"], num_jobs), len(ended))
    others = sorted(never_ran) + random.permutation(np.array(ended, dtype=int)).tolist()
    succeeded = others[len(others) - num_succeeded :]
    others = others[: len(others) - num_succeeded]
    stopped_share = published.STATUS["Stopped"] / (published.STATUS["Stopped"] + published.STATUS["Failed"])
    num_stopped = round(stopped_share * len(others))
    marks = random.permutation(np.arange(len(others)) < num_stopped)
    return dict.fromkeys(succeeded, Status.SUCCEEDED) | {
        number: Status.STOPPED if is_stopped else Status.FAILED
        for number, is_stopped in zip(others, marks, strict=True)
    }
