"""Group commit: changes that wait are written together, and changes after a lost one are lost with it."""

import asyncio
from collections.abc import Sequence

import pytest

from controller.errors import StoreError
from controller.registry.errors import CommitError
from controller.registry.journal import Change, JobChange, Journal


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
