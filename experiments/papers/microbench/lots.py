"""Jobs that meet on the paths they have, reduced to what their iterations depend on.

Two settings are one where the same flows meet on links of the same rates and jobs that meet are on the same, a higher
or a lower level: so symmetric switches, links in a row, flows that meet nobody and levels of jobs that never meet make
no difference. All of it is exact under max-min fairness inside levels and strict priority between them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

from policies.snapshot import Snapshot

Choice = tuple[int, ...]
"""Which of its candidates every flow takes, in order of the jobs and their flows."""

Relation = tuple[int, ...]
"""By pair of jobs that meet: 1 where the first is on the higher level, -1 on the lower, 0 on the same."""


@dataclass(frozen=True, slots=True)
class LotFlow:
    """A flow, and how fast the links that it has to itself let it be."""

    job: int
    size_bytes: float
    own_bps: float


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link's rate, and its flows by their places in the lot, ascending."""

    users: tuple[int, ...]
    rate_bps: float


@dataclass(frozen=True)
class Lot:
    """Jobs, by their numbers in the case, that meet directly or through others; one that meets nobody is a lot too.

    A flow that has all its links to itself is left out where another one of its job takes as long at least.
    """

    jobs: tuple[int, ...]
    flows: tuple[LotFlow, ...]
    links: tuple[SharedLink, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of the jobs that meet on a link, the earlier job first."""
        place = {job: number for number, job in enumerate(self.jobs)}
        meeting = {
            (place[one], place[other])
            for link in self.links
            for one, other in combinations(sorted({self.flows[user].job for user in link.users}), 2)
        }
        return tuple(sorted(meeting))

    def relation(self, levels: Sequence[int]) -> Relation:
        """Who goes before whom where jobs, in order of the lot, have these levels."""
        return tuple((levels[one] > levels[other]) - (levels[one] < levels[other]) for one, other in self.pairs)

    def relations(self, num_levels: int) -> dict[Relation, tuple[int, ...]]:
        """All that so many levels can make, each with levels that make it."""
        found: dict[Relation, tuple[int, ...]] = {}
        for levels in product(range(num_levels), repeat=len(self.jobs)):
            found.setdefault(self.relation(levels), levels)
        return found

    def without(self, jobs: Collection[int]) -> tuple["Lot", ...]:
        """The lots that are left without some jobs."""
        if not jobs:
            return (self,)
        left = [number for number, flow in enumerate(self.flows) if flow.job not in jobs]
        place = {number: position for position, number in enumerate(left)}
        links = [(tuple(place[user] for user in link.users if user in place), link.rate_bps) for link in self.links]
        return _lots([job for job in self.jobs if job not in jobs], [self.flows[number] for number in left], links)


def choices(snapshot: Snapshot) -> Iterator[Choice]:
    """Every choice of paths."""
    return product(*(range(len(flow.candidates)) for job in snapshot.jobs for flow in job.flows))


def lots(snapshot: Snapshot, choice: Choice) -> tuple[Lot, ...]:
    """The jobs of a case by whom they meet, in order of their first jobs."""
    rates_bps = snapshot.links.rates_bps
    users: defaultdict[int, list[int]] = defaultdict(list)
    flows = []
    for number, (job, flow) in enumerate((job, flow) for job, each in enumerate(snapshot.jobs) for flow in each.flows):
        flows.append(LotFlow(job, flow.size_bytes, float("inf")))
        for link in (*flow.candidates[choice[number]], *flow.host_links):
            users[link].append(number)
    links = [(tuple(of_link), float(rates_bps[link])) for link, of_link in users.items()]
    return _lots(range(len(snapshot.jobs)), flows, links)


def _lots(
    jobs: Iterable[int], flows: Sequence[LotFlow], links: Iterable[tuple[tuple[int, ...], float]]
) -> tuple[Lot, ...]:
    """Lots of jobs from their flows, and from links by the places of those who use them."""
    own_bps = [flow.own_bps for flow in flows]
    shared: dict[tuple[int, ...], float] = {}
    for users, rate_bps in links:
        if len(users) == 1:
            own_bps[users[0]] = min(own_bps[users[0]], rate_bps)
        elif users:
            shared[users] = min(rate_bps, shared.get(users, rate_bps))
    kept = _kept(flows, own_bps, shared)
    made = []
    for of_lot in _joined(jobs, ({flows[user].job for user in users} for users in shared)):
        numbers = [number for number in kept if flows[number].job in of_lot]
        place = {number: position for position, number in enumerate(numbers)}
        made.append(
            Lot(
                of_lot,
                tuple(LotFlow(flows[number].job, flows[number].size_bytes, own_bps[number]) for number in numbers),
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


def _kept(flows: Sequence[LotFlow], own_bps: Sequence[float], shared: Mapping[tuple[int, ...], float]) -> list[int]:
    """The flows that meet others, and of each job the one that takes longest alone if that does not."""
    fastest_bps = list(own_bps)
    for users, rate_bps in shared.items():
        for user in users:
            fastest_bps[user] = min(fastest_bps[user], rate_bps)
    meets = {user for users in shared for user in users}
    longest: dict[int, tuple[float, bool, int]] = {}
    for number, flow in enumerate(flows):
        if flow.size_bytes > 0:
            # Of flows that take as long, one that meets others stands for all.
            key = flow.size_bytes / fastest_bps[number], number in meets, number
            longest[flow.job] = max(key, longest.get(flow.job, key))
    return sorted(meets.union(number for _, _, number in longest.values()))


def _joined(jobs: Iterable[int], meetings: Iterable[set[int]]) -> list[tuple[int, ...]]:
    """Jobs by which of them meet, directly or through others."""
    groups = [{job} for job in jobs]
    for meeting in meetings:
        touched = [group for group in groups if group & meeting]
        groups = [group for group in groups if not group & meeting] + [set().union(*touched)]
    return sorted(tuple(sorted(group)) for group in groups)
