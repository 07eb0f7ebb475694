"""The leases of jobs, which run down only while there is a controller that could hear of them."""

from collections.abc import Iterator

_STEP_SHARE = 0.125
_QUIET_SHARE = 0.375
"""Of a lease: how often silence is told to the next controller; and up to where it is none, as a job is to be heard of
every third of its lease."""


class Leases:
    """Leases of ``lease_s`` seconds each, by the names of jobs; callers pass the time.

    What outlives a controller is how long a job has been silent, where that is long; a renewal is worth telling only
    where silence was told before. So jobs that are all heard of in time cost nothing, the time without a controller
    counts for nobody, and a job that has died has one lease altogether, longer only by what a controller that ended had
    not told yet: ``step_s``, for the one that heard of the job last half a lease.
    """

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.step_s = _STEP_SHARE * lease_s
        self._ends_s: dict[str, float] = {}
        self._told_s: dict[str, float] = {}
        self._unheard: set[str] = set()
        """Jobs that a former controller knew and this one has not heard of."""

    @property
    def next_end_s(self) -> float | None:
        """When the earliest lease ends; None where there is none."""
        return min(self._ends_s.values(), default=None)

    def end_s(self, name: str) -> float | None:
        """When the lease of a job ends; None where it has none."""
        return self._ends_s.get(name)

    def ended(self, now_s: float) -> tuple[str, ...]:
        """The jobs whose leases have ended."""
        return tuple(sorted(name for name, end_s in self._ends_s.items() if end_s <= now_s))

    def told_s(self, name: str) -> float:
        """The silence of a job that the next controller has been told; 0 where it has been told none."""
        return self._told_s.get(name, 0.0)

    def renew(self, name: str, now_s: float) -> None:
        """Begin the lease of a job anew."""
        self._ends_s[name] = now_s + self.lease_s
        self._unheard.discard(name)

    def restore(self, name: str, now_s: float, silent_s: float) -> None:
        """Go on with the lease of a job that has been silent for so long under former controllers."""
        self._ends_s[name] = now_s + self.lease_s - silent_s
        self._unheard.add(name)
        self.tell(name, silent_s)

    def put(self, name: str, end_s: float | None, told_s: float) -> None:
        """Have things be as they were; None: there was no lease."""
        if end_s is None:
            self.drop(name)
        else:
            self._ends_s[name] = end_s
            self.tell(name, told_s)

    def drop(self, name: str) -> None:
        """A job has gone."""
        self._ends_s.pop(name, None)
        self._told_s.pop(name, None)
        self._unheard.discard(name)

    def tell(self, name: str, silent_s: float) -> None:
        """The next controller is told this silence; 0: none."""
        if silent_s:
            self._told_s[name] = silent_s
        else:
            self._told_s.pop(name, None)

    def silences_s(self, now_s: float) -> Iterator[tuple[str, float]]:
        """The jobs whose silence is to be told now."""
        for name, end_s in self._ends_s.items():
            silent_s = now_s - (end_s - self.lease_s)
            if silent_s > 0 and (name in self._unheard or silent_s > _QUIET_SHARE * self.lease_s):
                yield name, silent_s
