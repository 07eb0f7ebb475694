"""Group commit: changes that wait are written together, and changes after a lost one are lost with it."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from controller.errors import StoreError
from controller.registry import journal
from controller.registry.errors import CommitError
from controller.registry.jobs import RegisteredFlowGroup, RegisteredJob
from controller.registry.journal import Change, JobChange, Journal
from controller.registry.requests import JobRequest


class Disk:
    """Takes what it is given when it is allowed to; ``fails`` is asked for each write."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.lost: list[str] = []
        self.stored: list[str] = []
        self.fails = False
        self.allowed = asyncio.Event()
        self.journal = Journal(self._write)
        self.journal.follow(
            lambda changes: self.stored.extend(change.job for change in changes),
            lambda changes, _: self.lost.extend(change.job for change in changes),
        )

    async def _write(self, changes: Sequence[Change]) -> None:
        await self.allowed.wait()
        if self.fails:
            raise StoreError("database x: database or disk is full")
        self.written.append([change.job for change in changes])

    async def change(self, name: str) -> None:
        self.journal.add(JobChange(name, None, None))
        await self.journal.commit()


def test_changes_that_come_during_a_write_go_together_with_the_next() -> None:
    async def scenario() -> None:
        disk = Disk()
        changes = [asyncio.create_task(disk.change("a"))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        changes += [asyncio.create_task(disk.change(name)) for name in "bcd"]
        await asyncio.sleep(0)
        assert not any(change.done() for change in changes)
        disk.allowed.set()
        await asyncio.gather(*changes)
        assert disk.written == [["a"], ["b", "c", "d"]]
        assert disk.stored == ["a", "b", "c", "d"]

    asyncio.run(scenario())


def test_a_commit_without_changes_waits_for_the_write_in_progress() -> None:
    async def scenario() -> None:
        disk = Disk()
        change = asyncio.create_task(disk.change("a"))
        await asyncio.sleep(0.001)
        waiting = asyncio.ensure_future(disk.journal.commit())
        await asyncio.sleep(0.001)
        assert not waiting.done()
        disk.allowed.set()
        await waiting
        assert disk.stored == ["a"]
        await change
        await disk.journal.commit()

    asyncio.run(scenario())


def test_a_lost_change_takes_later_ones_with_it_and_the_next_is_stored() -> None:
    async def scenario() -> None:
        disk = Disk()
        disk.fails = True
        changes = [asyncio.create_task(disk.change("a"))]
        await asyncio.sleep(0.001)
        changes += [asyncio.create_task(disk.change(name)) for name in "bc"]
        await asyncio.sleep(0.001)
        disk.allowed.set()
        for outcome in await asyncio.gather(*changes, return_exceptions=True):
            assert isinstance(outcome, CommitError)
            assert str(outcome).startswith("not stored: the controller's database fails")
            assert "database x" not in str(outcome)  # which any client would read
        assert (disk.written, disk.lost) == ([], ["a", "b", "c"])
        disk.fails = False
        await disk.change("d")
        assert (disk.written, disk.stored) == ([["d"]], ["d"])

    asyncio.run(scenario())


def test_a_loss_before_the_wait_is_raised_by_the_wait() -> None:
    async def scenario() -> None:
        disk = Disk()
        disk.fails = True
        first = asyncio.create_task(disk.change("a"))
        await asyncio.sleep(0.001)
        disk.journal.add(JobChange("b", None, None))
        outcome = disk.journal.commit()
        disk.allowed.set()
        with pytest.raises(CommitError):
            await first
        with pytest.raises(CommitError):
            await outcome
        assert disk.lost == ["a", "b"]

    asyncio.run(scenario())


def test_a_cancelled_wait_cancels_no_commit() -> None:
    async def scenario() -> None:
        disk = Disk()
        gone, staying = (asyncio.create_task(disk.change(name)) for name in "ab")
        await asyncio.sleep(0.001)
        gone.cancel()
        await asyncio.sleep(0)
        disk.allowed.set()
        await staying
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert disk.stored == ["a", "b"]

    asyncio.run(scenario())


class PartedDisk(Disk):
    """A disk that takes two groups of a large registration at a time; ``staging_fails`` is asked for each part."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed.set()
        self.staging_fails = False
        self.journal = Journal(self._write, self._stage)
        self.journal.follow(
            lambda changes: self.stored.extend(change.job for change in changes),
            lambda changes, _: self.lost.extend(change.job for change in changes),
        )

    async def _stage(self, change: JobChange, first: int) -> int:
        await asyncio.sleep(0)
        if self.staging_fails:
            raise StoreError("database x: database or disk is full")
        assert change.after is not None
        last = min(first + 2, len(change.after.flow_groups))
        self.written.append([f"{change.job} {first} to {last}"])
        return last


@pytest.fixture
def parted(monkeypatch: pytest.MonkeyPatch) -> type[PartedDisk]:
    """A disk to which more than three groups are a large registration."""
    monkeypatch.setattr(journal, "_ROWS_PER_BATCH", 4)
    return PartedDisk


def _growth(name: str, number: int) -> JobChange:
    job = RegisteredJob(JobRequest(name, ("h0",), 1, None), 0.0, "", (RegisteredFlowGroup("g", ()),))
    more = tuple(RegisteredFlowGroup(f"g{position}", ()) for position in range(number))
    return JobChange(name, job, RegisteredJob(job.request, 0.0, "", job.flow_groups + more))


async def _commits(disk: Disk, *changes: JobChange) -> list["asyncio.Task[None]"]:
    """Each committed by a caller of its own, before anything is written."""
    tasks = []
    for change in changes:
        disk.journal.add(change)
        tasks.append(asyncio.ensure_future(_awaited(disk.journal.commit(change.job))))
    return tasks


async def _awaited(outcome: Awaitable[None]) -> None:
    await outcome


def test_changes_of_other_jobs_overtake_a_large_registration(parted: type[PartedDisk]) -> None:
    async def scenario() -> None:
        disk = parted()
        changes = (_growth("large", 5), *(JobChange(name, None, None) for name in ("a", "large", "b")))
        large, a, again, b = await _commits(disk, *changes)
        repeated = asyncio.ensure_future(_awaited(disk.journal.commit("large")))  # the same call once more
        everything = asyncio.ensure_future(_awaited(disk.journal.commit()))
        ended: list[asyncio.Task[None]] = []
        for task in (large, a, again, b, repeated, everything):
            task.add_done_callback(ended.append)
        await disk.journal.commit("nobody")  # nothing concerns it
        assert disk.written == []
        await asyncio.gather(large, a, again, b, repeated, everything)
        # What comes after another change of the large job may depend on that.
        parts = [["large 1 to 3"], ["a"], ["large 3 to 5"], ["large 5 to 6"]]
        assert disk.written == [*parts, ["large"], ["large", "b"]]
        assert ended[:2] == [a, large]
        assert disk.stored == ["a", "large", "large", "b"]

    asyncio.run(scenario())


def test_two_large_registrations_keep_nobody_waiting(parted: type[PartedDisk]) -> None:
    async def scenario() -> None:
        disk = parted()
        one, two, small = await _commits(disk, _growth("one", 5), _growth("two", 5), JobChange("a", None, None))
        await asyncio.gather(one, two, small)
        assert disk.written[:2] == [["one 1 to 3"], ["a"]]
        assert disk.stored == ["a", "one", "two"]

    asyncio.run(scenario())


def test_a_registration_that_cannot_be_staged_is_lost_with_what_waits(parted: type[PartedDisk]) -> None:
    async def scenario() -> None:
        disk = parted()
        disk.staging_fails = True
        tasks = await _commits(disk, JobChange("a", None, None), _growth("large", 5), JobChange("b", None, None))
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, CommitError) for outcome in outcomes)
        assert disk.lost == ["a", "large", "b"]
        disk.staging_fails = False
        (again,) = await _commits(disk, _growth("large", 5))
        await again
        assert disk.stored == ["large"]

    asyncio.run(scenario())


def test_changes_that_fail_are_lost_in_the_order_in_which_they_were_added(parted: type[PartedDisk]) -> None:
    async def scenario() -> None:
        disk = parted()
        disk.fails = True
        tasks = await _commits(disk, _growth("large", 5), JobChange("a", None, None), JobChange("b", None, None))
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, CommitError) for outcome in outcomes)
        assert disk.lost == ["large", "a", "b"]

    asyncio.run(scenario())


def test_small_changes_wait_for_a_large_one_only_if_it_comes_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "_ROWS_PER_BATCH", 4)

    async def scenario() -> None:
        disk = Disk()  # which takes no parts
        disk.allowed.set()
        tasks = await _commits(disk, *(JobChange(name, None, None) for name in "abc"), _growth("large", 5))
        await asyncio.gather(*tasks)
        assert disk.written == [["a", "b", "c"], ["large"]]

    asyncio.run(scenario())
