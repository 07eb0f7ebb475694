"""Contention components: jobs that share links, directly or through others, reduced to what iterations depend on.

Two settings are equivalent where the same flows share links of the same rates, and jobs that share a link have the same
relative levels. So symmetric switches, links in a row, flows without contention, and the levels of jobs that never
share a link make no difference. This is exact under max-min fairness inside levels and strict priority between them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

from policies.snapshot import Snapshot

Choice = tuple[int, ...]
"""The number of each flow's path among its candidates, in order of the jobs and their flows."""

Relation = tuple[int, ...]
"""For each pair of jobs that share a link: 1 where the first has the higher level, -1 the lower, 0 the same."""


@dataclass(frozen=True, slots=True)
class ComponentFlow:
    """A flow. ``own_bps`` is the rate of the slowest link that it has to itself."""

    job: int
    size_bytes: float
    own_bps: float


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link's rate, and the places of its flows in the component, ascending."""

    users: tuple[int, ...]
    rate_bps: float


@dataclass(frozen=True)
class Component:
    """Jobs, by their numbers in the case, that share links directly or through others; or a single job that does not.

    A flow that has all its links to itself is left out where another flow of its job takes at least as long.
    """

    jobs: tuple[int, ...]
    flows: tuple[ComponentFlow, ...]
    links: tuple[SharedLink, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of the jobs that share a link, the earlier job first."""
        place = {job: number for number, job in enumerate(self.jobs)}
        contending = {
            (place[one], place[other])
            for link in self.links
            for one, other in combinations(sorted({self.flows[user].job for user in link.users}), 2)
        }
        return tuple(sorted(contending))

    def relation(self, levels: Sequence[int]) -> Relation:
        """Return the relation of levels, given by job in order of the component."""
        return tuple((levels[one] > levels[other]) - (levels[one] < levels[other]) for one, other in self.pairs)

    def relations(self, num_levels: int) -> dict[Relation, tuple[int, ...]]:
        """Return all relations that this number of levels allows, each with levels that give it."""
        found: dict[Relation, tuple[int, ...]] = {}
        for levels in product(range(num_levels), repeat=len(self.jobs)):
            found.setdefault(self.relation(levels), levels)
        return found

    def without(self, jobs: Collection[int]) -> tuple["Component", ...]:
        """Return the components that remain without some jobs."""
        if not jobs:
            return (self,)
        left = [number for number, flow in enumerate(self.flows) if flow.job not in jobs]
        place = {number: position for position, number in enumerate(left)}
        links = [(tuple(place[user] for user in link.users if user in place), link.rate_bps) for link in self.links]
        return _components(
            [job for job in self.jobs if job not in jobs], [self.flows[number] for number in left], links
        )


def choices(snapshot: Snapshot) -> Iterator[Choice]:
    """Return every choice of paths."""
    return product(*(range(len(flow.candidates)) for job in snapshot.jobs for flow in job.flows))


def components(snapshot: Snapshot, choice: Choice) -> tuple[Component, ...]:
    """Return the contention components of a case, in order of their first jobs."""
    rates_bps = snapshot.links.rates_bps
    users: defaultdict[int, list[int]] = defaultdict(list)
    flows = []
    for number, (job, flow) in enumerate((job, flow) for job, each in enumerate(snapshot.jobs) for flow in each.flows):
        flows.append(ComponentFlow(job, flow.size_bytes, float("inf")))
        for link in (*flow.candidates[choice[number]], *flow.host_links):
            users[link].append(number)
    links = [(tuple(of_link), float(rates_bps[link])) for link, of_link in users.items()]
    return _components(range(len(snapshot.jobs)), flows, links)


def _components(
    jobs: Iterable[int], flows: Sequence[ComponentFlow], links: Iterable[tuple[tuple[int, ...], float]]
) -> tuple[Component, ...]:
    """Return the components, given links as the places of their flows and a rate."""
    own_bps = [flow.own_bps for flow in flows]
    shared: dict[tuple[int, ...], float] = {}
    for users, rate_bps in links:
        if len(users) == 1:
            own_bps[users[0]] = min(own_bps[users[0]], rate_bps)
        elif users:
            shared[users] = min(rate_bps, shared.get(users, rate_bps))
    kept = _kept(flows, own_bps, shared)
    made = []
    for members in _connected(jobs, ({flows[user].job for user in users} for users in shared)):
        numbers = [number for number in kept if flows[number].job in members]
        place = {number: position for position, number in enumerate(numbers)}
        made.append(
            Component(
                members,
                tuple(
                    ComponentFlow(flows[number].job, flows[number].size_bytes, own_bps[number]) for number in numbers
                ),
                tuple(
                    SharedLink(*link)
                    for link in sorted(
                        (tuple(place[user] for user in users), rate_bps)
                        for users, rate_bps in shared.items()
                        if users[0] in place
                    )
                ),
            )
        )
    return tuple(made)


def _kept(
    flows: Sequence[ComponentFlow], own_bps: Sequence[float], shared: Mapping[tuple[int, ...], float]
) -> list[int]:
    """Return the flows that share links, and each job's longest flow even where it shares none."""
    fastest_bps = list(own_bps)
    for users, rate_bps in shared.items():
        for user in users:
            fastest_bps[user] = min(fastest_bps[user], rate_bps)
    sharing = {user for users in shared for user in users}
    longest: dict[int, tuple[float, bool, int]] = {}
    for number, flow in enumerate(flows):
        if flow.size_bytes > 0:
            # Among flows that take equally long, one that shares a link stands for all.
            key = flow.size_bytes / fastest_bps[number], number in sharing, number
            longest[flow.job] = max(key, longest.get(flow.job, key))
    return sorted(sharing.union(number for _, _, number in longest.values()))


def _connected(jobs: Iterable[int], sharing: Iterable[set[int]]) -> list[tuple[int, ...]]:
    """Return the connected components of jobs, given sets of jobs that share a link."""
    groups = [{job} for job in jobs]
    for together in sharing:
        touched = [group for group in groups if group & together]
        groups = [group for group in groups if not group & together] + [set().union(*touched)]
    return sorted(tuple(sorted(group)) for group in groups)
