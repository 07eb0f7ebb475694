"""The leases of jobs, which run down only while a controller is there to hear heartbeats."""

from collections.abc import Iterator

_PERIOD_SHARE = 0.125
"""How often silences are recorded, as a share of the lease."""
_QUIET_SHARE = 0.375
"""Shorter silences are not recorded: a healthy job sends a heartbeat every third of its lease."""


class JobLeases:
    """Leases of ``lease_s`` seconds each, by the names of jobs; callers pass the time.

    A lease itself is never stored. What outlives a controller is how long a job has been silent, and only once that is
    long; a renewal needs to be stored only where a silence was. So jobs with regular heartbeats cost no writes, and the
    time without a controller counts against nobody. A job that has died keeps its lease for ``lease_s`` altogether,
    over all controllers; longer only by what the last one had not recorded yet: at most ``silence_period_s``, or half a
    lease for the controller that heard of the job last.
    """

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.silence_period_s = _PERIOD_SHARE * lease_s
        self._ends_s: dict[str, float] = {}
        self._silences_s: dict[str, float] = {}
        """Recorded silences."""
        self._unheard: set[str] = set()
        """Jobs of a former controller that this one has not heard of."""

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

    def recorded_silence_s(self, name: str) -> float:
        """The silence that is recorded of a job; 0 where none is."""
        return self._silences_s.get(name, 0.0)

    def renew(self, name: str, now_s: float) -> None:
        """Begin the lease of a job anew."""
        self._ends_s[name] = now_s + self.lease_s
        self._unheard.discard(name)

    def extend(self, by_s: float) -> None:
        """Put off the end of all leases."""
        self._ends_s = {name: end_s + by_s for name, end_s in self._ends_s.items()}

    def restore(self, name: str, now_s: float, silent_s: float) -> None:
        """Continue the lease of a job that has been silent for ``silent_s`` under former controllers."""
        self._ends_s[name] = now_s + self.lease_s - silent_s
        self._unheard.add(name)
        self.record_silence(name, silent_s)

    def put(self, name: str, end_s: float | None, recorded_silence_s: float) -> None:
        """Set the lease and the recorded silence of a job; None: it has no lease."""
        if end_s is None:
            self.drop(name)
        else:
            self._ends_s[name] = end_s
            self.record_silence(name, recorded_silence_s)

    def drop(self, name: str) -> None:
        """Forget a job."""
        self._ends_s.pop(name, None)
        self._silences_s.pop(name, None)
        self._unheard.discard(name)

    def record_silence(self, name: str, silent_s: float) -> None:
        """Take this silence as recorded; 0: none."""
        if silent_s:
            self._silences_s[name] = silent_s
        else:
            self._silences_s.pop(name, None)

    def silences_s(self, now_s: float) -> Iterator[tuple[str, float]]:
        """The jobs whose silence is to be recorded now, each with its silence."""
        for name, end_s in self._ends_s.items():
            silent_s = now_s - (end_s - self.lease_s)
            if silent_s > 0 and (name in self._unheard or silent_s > _QUIET_SHARE * self.lease_s):
                yield name, silent_s
