"""The schedulers of all islands, and the order that holds over them."""

from collections.abc import Callable

from runtime.scheduling.errors import SchedulingError
from runtime.scheduling.gangs import Grant
from runtime.scheduling.policy import Policy
from runtime.scheduling.precedence import Precedence
from runtime.scheduling.scheduler import DEFAULT_LOOK_AHEAD_S, IslandScheduler


class ClusterScheduler:
    """One scheduler per island, and one precedence for the gangs of all.

    Args:
        make_policy: Makes the policy of an island.
        look_ahead_s: As for IslandScheduler.
    """

    def __init__(self, make_policy: Callable[[], Policy], look_ahead_s: float = DEFAULT_LOOK_AHEAD_S) -> None:
        self._make_policy = make_policy
        self._look_ahead_s = look_ahead_s
        self._precedence = Precedence()
        self._islands: dict[str, IslandScheduler] = {}

    def add_island(self, name: str) -> IslandScheduler:
        """Add an island, and return its scheduler.

        Raises:
            SchedulingError: There is one of this name.
        """
        if name in self._islands:
            raise SchedulingError(f"island {name!r}: has a scheduler")
        scheduler = IslandScheduler(self._make_policy(), self._look_ahead_s, self._precedence)
        self._islands[name] = scheduler
        return scheduler

    def __getitem__(self, island: str) -> IslandScheduler:
        """Return the scheduler of an island.

        Raises:
            SchedulingError: There is none of this name.
        """
        try:
            return self._islands[island]
        except KeyError:
            raise SchedulingError(f"island {island!r}: has no scheduler") from None

    def grants(self, now_s: float) -> list[tuple[str, Grant]]:
        """Return what may be enqueued now, with the island, in an order that puts every gang after its inputs."""
        granted: list[tuple[str, Grant]] = []
        while changed := [name for name, scheduler in self._islands.items() if scheduler.has_changed]:
            for name in changed:
                granted += [(name, grant) for grant in self._islands[name].grants(now_s)]
        return granted

    def withdraw(self, client: str) -> list[int]:
        """Drop what a client waits for on all islands, and what comes after it; return the numbers, sorted."""
        return sorted(number for scheduler in self._islands.values() for number in scheduler.withdraw(client))
