"""The policy's steps one by one, from nothing: an order of jobs on the paths they have, and levels for any order."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from policies.snapshot import Snapshot
from policies.trainyard.component import Lot, Setting, best_lots
from policies.trainyard.components import components
from policies.trainyard.options import TrainyardOptions

_DEFAULT = TrainyardOptions()


def orders(snapshot: Snapshot, options: TrainyardOptions = _DEFAULT) -> list[tuple[str, ...]]:
    """The jobs that meet, lot by lot, each by its most urgent flow group; jobs that send nothing are in no lot."""
    found = []
    for lot in _lots(snapshot, options):
        job_of = lot.arranging.contention.job_of_group
        found.append(tuple(dict.fromkeys(lot.jobs[job_of[group]].name for group in lot.arranging.best_order())))
    return found


def levels_in_order(
    snapshot: Snapshot, order: Sequence[str], options: TrainyardOptions = _DEFAULT
) -> Mapping[str, int]:
    """Levels of jobs that stand in this order, which names all that send; a job has that of its most urgent group.

    Flow groups of one job stay in their order. The policy moves levels that its compression gives where its model says
    that it pays, so that a job may get a higher level than one that stands before it.
    """
    place = {name: number for number, name in enumerate(order)}
    found = {}
    for lot in _lots(snapshot, options):
        job_of = lot.arranging.contention.job_of_group
        groups = np.argsort([place[lot.jobs[job].name] for job in job_of], kind="stable")
        levels = lot.arranging.compressed(groups).levels
        for number, job in enumerate(lot.jobs):
            found[job.name] = int(levels[job_of == number].max())
    return found


def _lots(snapshot: Snapshot, options: TrainyardOptions) -> Iterator[Lot]:
    """The jobs that meet, with nothing in force."""
    setting = Setting(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    no_prices = np.zeros(len(snapshot.links))
    for component in components(sorted(snapshot.jobs, key=lambda job: job.name)):
        yield from best_lots(component, no_prices, setting, snapshot.foreign_utilisation)
