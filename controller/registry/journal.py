"""Group commit: the registry's changes that wait together are committed together, off the event loop.

A large registration is written in parts before it is committed, and changes of other jobs come between these. So nobody
waits for it but its own job.
"""

import asyncio
import logging
import operator
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from controller.background import BackgroundTask
from controller.errors import OutOfTermError, StoreError, UnknownOutcomeError
from controller.registry.errors import CommitError
from controller.registry.jobs import FlowGroupInstance, RegisteredJob

_LOG = logging.getLogger(__name__)

_ROWS_PER_BATCH = 1_000
"""A batch of more rows is committed alone, so that others wait for it only where they come after it."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job before and after a change, None where it is not registered; the other fields are those of before.

    Of the flow groups of ``after``, the first ``num_staged`` are in the database already, and count with this change.
    """

    job: str
    before: RegisteredJob | None
    after: RegisteredJob | None
    lease_end_s: float | None = None
    recorded_silence_s: float = 0.0
    instances: dict[str, FlowGroupInstance] | None = None
    num_staged: int = 0

    @property
    def is_growth(self) -> bool:
        """Whether it does nothing to the flow groups of a registered job but add some."""
        if self.before is None or self.after is None:
            return False
        known, groups = self.before.flow_groups, self.after.flow_groups
        return len(known) < len(groups) and all(map(operator.is_, known, groups))


@dataclass(frozen=True, slots=True)
class JobOverwrite:
    """A job to be written whole over whatever the database has of it, None to delete it.

    Changes with its instances and its silence follow.
    """

    job: str
    state: RegisteredJob | None


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """The newest instance of a job's flow group before, None where there was none, and after a change."""

    job: str
    flow_group: str
    before: FlowGroupInstance | None
    after: FlowGroupInstance


@dataclass(frozen=True, slots=True)
class SilenceChange:
    """How long a job has been silent, as the database has it before and after a change.

    It is 0 for a job that sends heartbeats.
    """

    job: str
    before_s: float
    after_s: float


Change = JobChange | JobOverwrite | InstanceChange | SilenceChange
"""A change of the registry that the database stores."""


Stage = Callable[[JobChange, int], Awaitable[int]]
"""Writes a part of the groups that a job gets, from a position on, and returns the position behind it."""


@dataclass
class _Batch:
    """Changes that are committed together; ``outcome`` is set once somebody waits for them.

    ``growth`` is its only change, if that is to be written in parts before it is committed.
    """

    changes: list[Change] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)
    num_rows: int = 0
    outcome: "asyncio.Future[None] | None" = None
    growth: JobChange | None = None


class Journal:
    """Commits changes in the order in which they are added; those that come during a commit go with the next.

    What was added between two calls of ``commit`` is committed together, and many of these as long as they are small.
    A large registration alone is overtaken, by changes of other jobs up to the first of its own.

    ``write`` commits all the changes it is given, or raises: StoreError where it has committed none, and
    UnknownOutcomeError where it may have. ``stage`` raises StoreError; None: large registrations are written at once.
    """

    def __init__(self, write: Callable[[Sequence[Change]], Awaitable[None]], stage: Stage | None = None) -> None:
        self._write = write
        self._stage = stage
        self._on_stored: Callable[[Sequence[Change]], None] = _ignore
        self._on_lost: Callable[[Sequence[Change], Sequence[Change]], None] = _ignore
        self._waiting: deque[_Batch] = deque()
        self._current: _Batch | None = None
        self._writing = BackgroundTask(self._write_all)

    def follow(
        self,
        on_stored: Callable[[Sequence[Change]], None],
        on_lost: Callable[[Sequence[Change], Sequence[Change]], None],
    ) -> None:
        """Set the callbacks, one of which is called once for every change, in order.

        Args:
            on_stored: Called with changes that are committed.
            on_lost: Called with changes that are not: those that failed, and all added since, which may depend on
                them. Its second argument has those that the database may have committed all the same.
        """
        self._on_stored, self._on_lost = on_stored, on_lost

    def add(self, change: Change) -> None:
        """Add a change, which is written with the next ``commit``."""
        num_rows = _num_rows(change)
        last = self._waiting[-1] if self._waiting else None
        is_apart = any(batch.growth is not None and change.job in batch.jobs for batch in self._waiting)
        if last is None or (last.outcome is not None and (is_apart or last.num_rows + num_rows > _ROWS_PER_BATCH)):
            last = _Batch()
            self._waiting.append(last)
        is_large = self._stage is not None and not last.changes and num_rows > _ROWS_PER_BATCH
        last.growth = change if is_large and isinstance(change, JobChange) and change.is_growth else None
        last.changes.append(change)
        last.jobs.add(change.job)
        last.num_rows += num_rows

    def commit(self, job: str | None = None) -> Awaitable[None]:
        """Commit all that was added before this call, or only what concerns a job.

        The result raises CommitError where it is lost instead.

        This is no coroutine function: the call itself must take hold of the outcome. Were that left to the first
        ``await``, a commit that failed in between would go unnoticed, and the change be acknowledged.
        """
        batches = ((self._current,) if self._current else ()) + tuple(self._waiting)
        concerned = [batch for batch in batches if job is None or job in batch.jobs]
        if not concerned:
            return nothing_to_commit()
        for batch in concerned:
            batch.outcome = batch.outcome or asyncio.get_running_loop().create_future()
        self._writing.start()
        return _all([batch.outcome for batch in concerned])

    async def _write_all(self) -> None:
        while self._waiting and self._waiting[0].outcome is not None:
            try:
                await self._stage_part()
            except Exception as error:
                self._lose([], _refusal(error))
                continue
            if (position := self._next_position()) is not None:
                await self._write_batch(position)

    async def _stage_part(self) -> None:
        """Write the next part of the first large registration."""
        for batch in self._waiting:
            if batch.growth is not None and batch.growth.after is not None and batch.outcome is not None:
                assert self._stage is not None
                change = batch.growth
                first = change.num_staged or len(change.before.flow_groups if change.before else ())
                staged = replace(change, num_staged=await self._stage(change, first))
                batch.changes[:] = [staged]
                batch.growth = staged if staged.num_staged < len(batch.growth.after.flow_groups) else None
                return

    def _next_position(self) -> int | None:
        """The position of the batch that is to be committed next; None where large registrations keep the rest back."""
        being_staged: set[str] = set()
        for position, batch in enumerate(self._waiting):
            if batch.outcome is None or not batch.jobs.isdisjoint(being_staged):
                return None
            if batch.growth is None:
                return position
            being_staged |= batch.jobs
        return None

    async def _write_batch(self, position: int) -> None:
        batch = self._current = self._waiting[position]
        del self._waiting[position]
        try:
            await self._write(batch.changes)
        except Exception as error:
            self._waiting.insert(position, batch)
            self._lose(batch.changes if isinstance(error, UnknownOutcomeError) else [], _refusal(error))
        else:
            if batch.outcome is not None:
                batch.outcome.set_result(None)
            self._on_stored(batch.changes)
        self._current = None

    def _lose(self, uncertain: list[Change], error: CommitError) -> None:
        """Give up all that waits, since it may depend on what has failed."""
        lost, self._waiting = self._waiting, deque()
        for batch in lost:
            if batch.outcome is not None:
                batch.outcome.set_exception(error)
                batch.outcome.exception()  # retrieved here, since whoever waited may have gone
        self._on_lost([change for batch in lost for change in batch.changes], uncertain)


async def _all(outcomes: Sequence["asyncio.Future[None] | None"]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            await asyncio.shield(outcome)


def _refusal(error: Exception) -> CommitError:
    """What a client is told; how the database is called and what it says stays in the log and with operators."""
    if isinstance(error, OutOfTermError):
        refusal = CommitError("not stored: another controller leads now")
    elif isinstance(error, StoreError):
        refusal = CommitError("not stored: the controller's database fails; the controller's log says how")
    else:
        _LOG.error("changes of jobs cannot be written", exc_info=error)
        refusal = CommitError("not stored: the controller has failed; its log says how")
    refusal.__cause__ = error
    return refusal


def _num_rows(change: Change) -> int:
    """About how many rows a change writes."""
    match change:
        case JobChange(_, before, after):
            known = () if before is None else before.flow_groups
            groups = () if after is None else after.flow_groups
            return 1 + abs(len(groups) - len(known)) + sum(map(operator.is_not, groups, known))
        case JobOverwrite(_, state):
            return 1 + (0 if state is None else len(state.flow_groups))
        case _:
            return 1


async def nothing_to_commit() -> None:
    """Return at once."""


def _ignore(*_: Sequence[Change]) -> None:
    pass
