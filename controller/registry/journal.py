"""Group commit: the registry's changes that wait together are committed together, off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from controller.background import BackgroundTask
from controller.errors import UnknownOutcomeError
from controller.registry.errors import CommitError
from controller.registry.jobs import FlowGroupInstance, RegisteredJob


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


class Journal:
    """Commits changes in the order in which they are added; those that come during a commit go with the next.

    ``write`` commits all the changes it is given, or raises: StoreError where it has committed none, and
    UnknownOutcomeError where it may have.
    """

    def __init__(self, write: Callable[[Sequence[Change]], Awaitable[None]]) -> None:
        self._write = write
        self._on_stored: Callable[[Sequence[Change]], None] = _ignore
        self._on_lost: Callable[[Sequence[Change], Sequence[Change]], None] = _ignore
        self._waiting: list[Change] = []
        self._next: asyncio.Future[None] | None = None
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
        self._waiting.append(change)

    def commit(self) -> Awaitable[None]:
        """Commit all that was added before this call; the result raises CommitError where it is lost instead.

        This is no coroutine function: the call itself must take hold of the outcome. Were that left to the first
        ``await``, a commit that failed in between would go unnoticed, and the change be acknowledged.
        """
        if self._waiting and self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        outcome = self._next or self._current
        if outcome is None:
            return nothing_to_commit()
        self._writing.start()
        return asyncio.shield(outcome)

    async def _write_all(self) -> None:
        while self._next is not None:
            changes, self._waiting = self._waiting, []
            self._current, self._next = self._next, None
            try:
                await self._write(changes)
            except Exception as error:
                uncertain = changes if isinstance(error, UnknownOutcomeError) else []
                self._lose(changes, uncertain, CommitError(f"not stored: {error}"))
            else:
                self._current.set_result(None)
                self._on_stored(changes)
            self._current = None

    def _lose(self, changes: list[Change], uncertain: list[Change], error: CommitError) -> None:
        lost, self._waiting = changes + self._waiting, []
        for outcome in (self._current, self._next):
            if outcome is not None:
                outcome.set_exception(error)
                outcome.exception()  # retrieved here, since whoever waited may have gone
        self._next = None
        self._on_lost(lost, uncertain)


async def nothing_to_commit() -> None:
    """Return at once."""


def _ignore(*_: Sequence[Change]) -> None:
    pass
