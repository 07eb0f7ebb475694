"""Which jobs send over which links under a decision, and how full these are: computed once for all explanations."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controller.planning.decision import Decision
from controller.telemetry.planned_loads import PlannedLoads, loads_by_job
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.intensity import Iteration, iterations
from policies.traffic import Loads


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two jobs that send over the same links: the place of the other in the order of rank, and where they meet."""

    place: int
    shared_links: int
    busiest_link: int


@dataclass(frozen=True, slots=True, eq=False)
class LinkUsers:
    """The jobs of a decision on its links.

    Attributes:
        loads: The bytes of every job on every link.
        iterations: By job, an iteration that waits for no other job.
        utilisation: By link, the planned utilisation.
    """

    loads: Loads
    iterations: list[Iteration]
    utilisation: FloatArray
    _users: IntArray
    """The places of jobs in the order of rank, link after link, ascending for each link."""
    _first_user: IntArray
    """By link, its first entry of ``_users``; one more at the end."""

    @classmethod
    def of(cls, decision: Decision) -> "LinkUsers":
        """Compute all of it, in a time that grows with the number of flows."""
        snapshot = decision.snapshot
        loads = loads_by_job(snapshot, decision.plan)
        places = {plan.name: place for place, plan in enumerate(decision.plan.jobs)}
        place_of_job = np.array([places[job.name] for job in snapshot.jobs], dtype=np.int64)
        place = np.repeat(place_of_job, np.diff(loads.first))
        num_users = np.bincount(loads.links, minlength=len(snapshot.links))
        return cls(
            loads,
            iterations(snapshot.jobs, loads.transfer_s(snapshot.links.rates_bps)),
            PlannedLoads.adding_up(loads, snapshot).utilisation,
            place[np.lexsort((place, loads.links))],
            np.concatenate(([0], np.cumsum(num_users))),
        )

    def places_on(self, link: int) -> list[int]:
        """The places, in the order of rank, of the jobs that send over a link."""
        places: list[int] = self._users[self._first_user[link] : self._first_user[link + 1]].tolist()
        return places

    def meetings(self, job: int, place: int, counts: BoolArray) -> Iterator[Meeting]:
        """The other jobs that send over links of one, as far as these count, in order of rank.

        Args:
            job: The number of the job in the Snapshot.
            place: Its place in the order of rank.
            counts: By link, whether sharing it counts.
        """
        links = self.loads.links[self.loads.first[job] : self.loads.first[job + 1]]
        links = links[counts[links]]
        # The fullest first, then by number: where a job appears first is where it is met.
        links = links[np.lexsort((links, -self.utilisation[links]))]
        users = [self._users[self._first_user[link] : self._first_user[link + 1]] for link in links.tolist()]
        if not users:
            return
        link_of_user = np.repeat(links, [len(on_link) for on_link in users])
        others, first, shared = np.unique(np.concatenate(users), return_index=True, return_counts=True)
        found = zip(others.tolist(), shared.tolist(), link_of_user[first].tolist(), strict=True)
        for other, shared_links, busiest_link in found:
            if other != place:
                yield Meeting(other, shared_links, busiest_link)
