"""What a decision means for jobs and links, for the page: the figures of ``explain`` for all of them at once.

Pure functions, for a thread beside the event loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from controller.api.operations.link_users import LinkUsers
from controller.planning.decision import Decision
from controller.rules.job_rules import levels_in_force
from controller.web.page.plan_changes import PlanChanges, plan_changes
from policies.intensity import intensity
from topologies.fabric import Fabric

MOST_NAMES = 8
"""Jobs of each kind that a job names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Met:
    """Jobs that a job meets on links where switches order flows: the first ones in order of rank, and how many."""

    names: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True)
class JobView:
    """A job under a decision.

    Attributes:
        rank: Its place, 0 the most urgent.
        level: The level of its traffic.
        intensity: GPU intensity; None where the policy does not compute it.
        priority: What the policy ranks by; None where it has nothing.
        alone_s: The length of an iteration that waits for no other job; None where that is not known.
        expected_s: The iteration time that the policy's model expects; None where it has no model.
        goes_before: Jobs that it waits for: they have a higher level.
        waits: Jobs that wait for it.
        shares: Jobs of its own level.
    """

    rank: int
    level: int
    intensity: float | None
    priority: float | None
    alone_s: float | None
    expected_s: float | None
    goes_before: Met
    waits: Met
    shares: Met


@dataclass(frozen=True, slots=True)
class PlanView:
    """A decision as the page shows it.

    Attributes:
        jobs: By name.
        utilisation: By link, the planned utilisation.
        intensity: By link, the highest GPU intensity of the jobs that send over it; None where none does.
        num_jobs: By link, how many jobs send over it.
        changes: What is new against the Plan before.
    """

    number: int
    policy: str
    jobs: Mapping[str, JobView]
    utilisation: tuple[float, ...]
    intensity: tuple[float | None, ...]
    num_jobs: tuple[int, ...]
    changes: PlanChanges


def plan_view(decision: Decision, fabric: Fabric, earlier: Decision | None = None) -> PlanView:
    """Derive all of it, in a time that grows with the number of flows.

    ``earlier`` is the decision that was viewed before; None: its Plan stands beside the one that was in force.
    """
    users = LinkUsers.of(decision)
    snapshot, plan = decision.snapshot, decision.plan
    intensities = {
        job.name: intensity(job, iteration) for job, iteration in zip(snapshot.jobs, users.iterations, strict=True)
    }
    by_place = [intensities[each.name] for each in plan.jobs]
    on_links = [users.places_on(link.index) for link in fabric.links]
    return PlanView(
        decision.number,
        plan.policy,
        _jobs(decision, users),
        tuple(users.utilisation[: len(fabric.links)].tolist()),
        tuple(max((by_place[place] or 0.0 for place in places), default=None) for places in on_links),
        tuple(map(len, on_links)),
        plan_changes(decision, fabric, earlier),
    )


def _jobs(decision: Decision, users: LinkUsers) -> Mapping[str, JobView]:
    snapshot, plans = decision.snapshot, decision.plan.jobs
    numbers = {job.name: number for number, job in enumerate(snapshot.jobs)}
    levels = levels_in_force(decision.plan, snapshot)
    expected_s = {} if decision.plan.worth is None else decision.plan.worth.iteration_s
    has_levels = np.asarray(snapshot.links.has_levels)
    views = {}
    for place, plan in enumerate(plans):
        number, level = numbers[plan.name], levels[plan.name]
        before: list[str] = []
        waits: list[str] = []
        shares: list[str] = []
        for met in users.meetings(number, place, has_levels):
            other = plans[met.place]
            (before if other.level > level else waits if other.level < level else shares).append(other.name)
        job, iteration = snapshot.jobs[number], users.iterations[number]
        views[plan.name] = JobView(
            plan.rank,
            level,
            plan.intensity,
            plan.priority,
            iteration.duration_s if job.flows else None,
            expected_s.get(plan.name),
            *(Met(tuple(names[:MOST_NAMES]), len(names)) for names in (before, waits, shares)),
        )
    return views
