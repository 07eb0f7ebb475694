"""Cuts what a process does into iterations: at steps of the optimizer, else where collectives repeat.

Of several optimizers, such as those of a generator and its discriminator, or one for each parameter, each steps once in
an iteration, and the last of them ends it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hostlib.torch.events import Event, Issue, StepEnd

_REPEATS = 3
"""So often a sequence of collectives must come before it counts as an iteration."""
_LONGEST_PERIOD = 4096
"""Collectives of an iteration that has no step."""
_TRIED_FROM = 64
"""So many collectives without a step, and the program is believed to have none: models are set up with fewer."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration: from the end of a step to the end of the next.

    Attributes:
        begin_ns: When it has begun.
        end_ns: When it has ended.
        events: What has happened in it, in order.
    """

    begin_ns: int
    end_ns: int
    events: tuple[Event, ...]

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Its collectives."""
        return tuple(event for event in self.events if isinstance(event, Issue))

    @property
    def sent_bytes(self) -> dict[str, int]:
        """Bytes of its collectives by process group, as a signature of what it does."""
        totals: dict[str, int] = {}
        for issue in self.issues:
            totals[issue.group] = totals.get(issue.group, 0) + issue.size_bytes
        return totals


@dataclass
class Cutter:
    """Cuts a stream of events. An iteration without collectives belongs to the next one."""

    _events: list[Event] = field(default_factory=list)
    _begin_ns: int | None = None
    _has_steps: bool = False
    _last_optimizer: int | None = None
    _stepped: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Which optimizers have stepped in this iteration: how many events there were by then, and when."""

    def cut(self, events: Iterable[Event]) -> list[Iteration]:
        """Take further events; return the iterations that have ended with them.

        What comes before the first step is no iteration, because nobody knows when it has begun.
        """
        ended: list[Iteration] = []
        for event in events:
            self._events.append(event)
            if isinstance(event, StepEnd):
                self._has_steps = True
                self._cut_at_step(event, ended)
        if not self._has_steps:
            self._cut_where_repeated(ended)
        return ended

    def _cut_at_step(self, step: StepEnd, ended: list[Iteration]) -> None:
        if step.optimizer in self._stepped:  # for the second time, so the iteration has ended before
            self._last_optimizer, (count, end_ns) = list(self._stepped.items())[-1]
            self._end_if_sent(end_ns, count, ended)
        self._stepped[step.optimizer] = len(self._events), step.time_ns
        if step.optimizer == self._last_optimizer:
            self._end_if_sent(step.time_ns, len(self._events), ended)

    def _end_if_sent(self, end_ns: int, count: int, ended: list[Iteration]) -> None:
        self._stepped.clear()
        if any(isinstance(each, Issue) for each in self._events[:count]):
            self._end(end_ns, count, ended)

    def _end(self, end_ns: int, count: int, ended: list[Iteration]) -> None:
        if self._begin_ns is not None:
            ended.append(Iteration(self._begin_ns, end_ns, tuple(self._events[:count])))
        del self._events[:count]
        self._begin_ns = end_ns

    def _cut_where_repeated(self, ended: list[Iteration]) -> None:
        """Cut before each repetition of a sequence of collectives that has come three times.

        What comes before the repetitions is no iteration.
        """
        issues = [(at, event) for at, event in enumerate(self._events) if isinstance(event, Issue)]
        keys = [(issue.operation, issue.group, issue.size_bytes, issue.peer) for _, issue in issues]
        period = shortest_period(keys) if len(keys) >= _TRIED_FROM else None
        if period is None:
            if len(self._events) > _REPEATS * _LONGEST_PERIOD:
                del self._events[: -_REPEATS * _LONGEST_PERIOD]
                self._begin_ns = None
            return
        first = len(keys) - period
        while first > 0 and keys[first - 1] == keys[first - 1 + period]:
            first -= 1
        if first > 0:
            self._begin_ns = None
        elif self._begin_ns is not None:
            first = period  # the first one has begun already
        removed = 0
        for number in range(first, len(keys), period):
            at, issue = issues[number]
            self._end(issue.time_ns, at - removed, ended)
            removed = at


def shortest_period(keys: Sequence[object]) -> int | None:
    """Return after how many keys the sequence's end repeats, three times at least; None where it does not."""
    for period in range(1, min(len(keys) // _REPEATS, _LONGEST_PERIOD) + 1):
        if keys[-1] == keys[-1 - period]:
            tail = keys[-_REPEATS * period :]
            if all(tail[at] == tail[at - period] for at in range(period, len(tail))):
                return period
    return None
