"""Group commit: the registry's changes that wait together are committed together, off the event loop."""

import asyncio
import logging
import operator
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from controller.background import BackgroundTask
from controller.errors import OutOfTermError, StoreError, UnknownOutcomeError
from controller.registry.errors import CommitError
from controller.registry.jobs import FlowGroupInstance, RegisteredJob

_LOG = logging.getLogger(__name__)

_ROWS_PER_BATCH = 2_000
"""A batch of more rows is committed alone, so that others wait for it only where they come after it."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job before and after a change, None where it is not registered; the other fields are those of before."""

    job: str
    before: RegisteredJob | None
    after: RegisteredJob | None
    lease_end_s: float | None = None
    recorded_silence_s: float = 0.0
    instances: dict[str, FlowGroupInstance] | None = None


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


@dataclass
class _Batch:
    """Changes that are committed together; ``outcome`` is set once somebody waits for them."""

    changes: list[Change] = field(default_factory=list)
    num_rows: int = 0
    outcome: "asyncio.Future[None] | None" = None


class Journal:
    """Commits changes in the order in which they are added; those that come during a commit go with the next.

    What was added between two calls of ``commit`` is committed together, and many of these as long as they are small.

    ``write`` commits all the changes it is given, or raises: StoreError where it has committed none, and
    UnknownOutcomeError where it may have.
    """

    def __init__(self, write: Callable[[Sequence[Change]], Awaitable[None]]) -> None:
        self._write = write
        self._on_stored: Callable[[Sequence[Change]], None] = _ignore
        self._on_lost: Callable[[Sequence[Change], Sequence[Change]], None] = _ignore
        self._waiting: deque[_Batch] = deque()
        self._current: asyncio.Future[None] | None = None
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
        if last is None or (last.outcome is not None and last.num_rows + num_rows > _ROWS_PER_BATCH):
            last = _Batch()
            self._waiting.append(last)
        last.changes.append(change)
        last.num_rows += num_rows

    def commit(self) -> Awaitable[None]:
        """Commit all that was added before this call; the result raises CommitError where it is lost instead.

        This is no coroutine function: the call itself must take hold of the outcome. Were that left to the first
        ``await``, a commit that failed in between would go unnoticed, and the change be acknowledged.
        """
        outcome = self._current
        if self._waiting:
            last = self._waiting[-1]
            outcome = last.outcome = last.outcome or asyncio.get_running_loop().create_future()
        if outcome is None:
            return nothing_to_commit()
        self._writing.start()
        return asyncio.shield(outcome)

    async def _write_all(self) -> None:
        while self._waiting and (outcome := self._waiting[0].outcome) is not None:
            changes, self._current = self._waiting.popleft().changes, outcome
            try:
                await self._write(changes)
            except Exception as error:
                uncertain = changes if isinstance(error, UnknownOutcomeError) else []
                self._lose(changes, uncertain, _refusal(error))
            else:
                outcome.set_result(None)
                self._on_stored(changes)
            self._current = None

    def _lose(self, changes: list[Change], uncertain: list[Change], error: CommitError) -> None:
        behind, self._waiting = self._waiting, deque()
        for outcome in (self._current, *(batch.outcome for batch in behind)):
            if outcome is not None:
                outcome.set_exception(error)
                outcome.exception()  # retrieved here, since whoever waited may have gone
        self._on_lost([*changes, *(change for batch in behind for change in batch.changes)], uncertain)


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
