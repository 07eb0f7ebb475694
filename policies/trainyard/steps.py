"""Single steps of the policy, for experiments: the order it finds, and the levels it gives to any order.

Both look for the most computation alone: here nobody is kept from starving.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from policies.snapshot import Snapshot
from policies.trainyard.component import Settings, best_components
from policies.trainyard.contention import candidate_components
from policies.trainyard.modelled import modelled_component, of_levels
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.policy import trainyard

_DEFAULT = TrainyardOptions(least_of_bound=0.0, longest_iteration_s=math.inf)


def order(snapshot: Snapshot, options: TrainyardOptions = _DEFAULT) -> tuple[str, ...]:
    """Return the names of the jobs that send, most urgent first, as if there were a level for each."""
    strict = replace(snapshot, num_levels=max(sum(len(job.flow_groups) for job in snapshot.jobs), 1), previous=None)
    sending = {job.name for job in snapshot.jobs if len(job.reachable_links)}
    plan = trainyard(strict, replace(options, may_share=False))
    return tuple(job.name for job in plan.jobs if job.name in sending)


def levels_in_order(
    snapshot: Snapshot, order: Sequence[str], options: TrainyardOptions = _DEFAULT
) -> Mapping[str, int]:
    """Return the levels of jobs in a given order, which names all jobs that send.

    A job has the level of its most urgent group. Where the model says that it pays, a job may get a higher level than
    one before it.
    """
    place = {name: number for number, name in enumerate(order)}
    settings = Settings(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    none = np.zeros(len(snapshot.links))
    found = {}
    for jobs in candidate_components(sorted(snapshot.jobs, key=lambda job: job.name)):
        numbers = np.array(sorted(range(len(jobs)), key=lambda number: place[jobs[number].name]), dtype=np.int64)
        modelled = modelled_component(jobs, {}, settings, snapshot.foreign_utilisation, options.evaluations)
        if modelled is not None:
            starts = [of_levels(modelled, levels) for levels in modelled.component.search.level_starts(numbers)]
            levels = modelled.search.best_from(starts[:1], starts[1:]).assignment.levels
            for job, groups in zip(jobs, modelled.model.groups_of, strict=True):
                found[job.name] = max(levels[group] for group in groups)
            continue
        for component in best_components(jobs, none, settings, snapshot.foreign_utilisation):
            in_order = np.array(
                sorted(range(len(component.jobs)), key=lambda number: place[component.jobs[number].name])
            )
            for job, level in zip(component.jobs, component.search.compressed(in_order).levels.tolist(), strict=True):
                found[job.name] = level
    return found
