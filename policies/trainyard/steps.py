"""Single steps of the policy, for experiments: the order it finds, and the levels it gives to any order."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from policies.snapshot import Snapshot
from policies.trainyard.component import Component, Settings, best_components
from policies.trainyard.contention import candidate_components
from policies.trainyard.options import TrainyardOptions

_DEFAULT = TrainyardOptions()


def orders(snapshot: Snapshot, options: TrainyardOptions = _DEFAULT) -> list[tuple[str, ...]]:
    """Return the names of the jobs of each component, in order of their most urgent flow groups.

    Jobs that send nothing are in no component.
    """
    found = []
    for component in _components(snapshot, options):
        job_of = component.search.contention.job_of_group
        found.append(
            tuple(dict.fromkeys(component.jobs[job_of[group]].name for group in component.search.best_order()))
        )
    return found


def levels_in_order(
    snapshot: Snapshot, order: Sequence[str], options: TrainyardOptions = _DEFAULT
) -> Mapping[str, int]:
    """Return the levels of jobs in a given order, which names all jobs that send.

    A job has the level of its most urgent group; the groups of one job keep their order. Where the model says that it
    pays, a job may get a higher level than one before it.
    """
    place = {name: number for number, name in enumerate(order)}
    found = {}
    for component in _components(snapshot, options):
        job_of = component.search.contention.job_of_group
        groups = np.argsort([place[component.jobs[job].name] for job in job_of], kind="stable")
        levels = component.search.compressed(groups).levels
        for number, job in enumerate(component.jobs):
            found[job.name] = int(levels[job_of == number].max())
    return found


def _components(snapshot: Snapshot, options: TrainyardOptions) -> Iterator[Component]:
    """Yield the components with nothing in force."""
    settings = Settings(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    no_prices = np.zeros(len(snapshot.links))
    for jobs in candidate_components(sorted(snapshot.jobs, key=lambda job: job.name)):
        yield from best_components(jobs, no_prices, settings, snapshot.foreign_utilisation)
