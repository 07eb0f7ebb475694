"""Leader election on a lease in memory and in virtual time."""

import asyncio
import re
from collections.abc import Callable

import pytest

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.leadership.leadership import Leadership, Lease
from controller.leadership.lease import VACANT, LeaseRecord
from tests.controller.leadership.virtual_time import run

_LEASE_S = 4.0


class _Table:
    """The lease in memory; each request takes ``delay_s``, half of it before it takes effect.

    ``writes`` are when and in which term anything was written by its holders.
    """

    def __init__(self) -> None:
        self.record = VACANT
        self.writes: list[tuple[float, int]] = []
        self.delay_s = 0.01
        self.is_away = False

    async def read(self) -> LeaseRecord:
        await self._pass()
        record = self.record
        await self._pass()
        return record

    async def take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        return await self._put(lambda known: known == seen, record)

    async def renew(self, term: int) -> bool:
        known = self.record
        return await self._put(
            lambda known: known.term == term, LeaseRecord(known.holder, term, known.renewals + 1, known.lease_s)
        )

    async def give_back(self, term: int) -> None:
        await self._put(lambda known: known.term == term, LeaseRecord(self.record.holder, term, 0, 0.0))

    async def _put(self, holds: Callable[[LeaseRecord], bool], record: LeaseRecord) -> bool:
        await self._pass()
        is_put = holds(self.record)
        if is_put:
            self.record = record
        await self._pass()
        return is_put

    async def _pass(self) -> None:
        if self.is_away:
            raise StoreError("database x: is away")
        await asyncio.sleep(self.delay_s / 2)


class _Controller:
    """Notes when it led; it writes every tenth of a second as long as it may."""

    def __init__(self, table: _Table, name: str) -> None:
        self.leadership = Leadership(table, name, _LEASE_S)
        self.lease: Lease | None = None
        self.failure: Exception | None = None
        self._writes = table.writes
        self.task = asyncio.create_task(self.leadership.run(self._lead))

    async def _lead(self, lease: Lease) -> None:
        self.lease = lease
        try:
            while True:
                await lease.granted()
                if self.failure is not None:
                    raise self.failure
                self._writes.append((_now_s(), lease.term))
                await asyncio.sleep(0.1)
        finally:
            self.lease = None

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def _leading(table: _Table, name: str) -> _Controller:
    """A controller that leads."""
    controller = _Controller(table, name)
    await _until(lambda: controller.lease is not None)
    return controller


def _now_s() -> float:
    return asyncio.get_running_loop().time()


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_the_first_leads_and_the_second_follows_when_the_lease_is_given_back() -> None:
    async def scenario() -> None:
        table = _Table()
        first = await _leading(table, "first")
        second = _Controller(table, "second")
        await asyncio.sleep(10 * _LEASE_S)
        assert second.lease is None
        assert second.leadership.known == "first does"
        stopped_s = _now_s()
        await first.stop()
        await _until(lambda: second.lease is not None)
        assert _now_s() - stopped_s < _LEASE_S / 4
        await asyncio.sleep(1.0)
        assert [term for _, term in table.writes] == sorted(term for _, term in table.writes)
        assert table.writes[-1][1] == 2
        await second.stop()

    run(scenario())


def test_a_controller_that_ends_while_it_takes_the_lease_gives_it_back() -> None:
    async def scenario() -> None:
        table = _Table()
        table.delay_s = 0.1
        ended = _Controller(table, "ended")
        await _until(lambda: table.record != VACANT)
        assert ended.lease is None  # it has not been told yet
        await ended.stop()
        assert table.record == LeaseRecord("ended", 1, 0, 0.0)

    run(scenario())


def test_a_controller_that_ends_while_another_takes_the_lease_does_not_give_it_back() -> None:
    async def scenario() -> None:
        table = _Table()
        table.delay_s = 0.1
        ended = _Controller(table, "ended")
        await asyncio.sleep(0.12)  # it has found nobody, and asks for the lease
        of_another = table.record = LeaseRecord("another", 1, 0, _LEASE_S)
        await ended.stop()
        assert table.record == of_another

    run(scenario())


@pytest.mark.parametrize(("is_away", "delay_s"), [(True, 0.01), (False, 1000.0)], ids=["is away", "hangs"])
def test_a_leader_without_a_database_stops_before_another_may_begin(*, is_away: bool, delay_s: float) -> None:
    async def scenario() -> None:
        table = _Table()
        only = await _leading(table, "only")
        await asyncio.sleep(3.0)
        gone_s, table.is_away, table.delay_s = _now_s(), is_away, delay_s
        await asyncio.sleep(_LEASE_S)
        assert only.lease is None
        assert gone_s < table.writes[-1][0] < gone_s + 0.75 * _LEASE_S
        await only.stop()

    run(scenario())


def test_a_former_leader_whose_database_is_back_leads_at_once() -> None:
    async def scenario() -> None:
        table = _Table()
        only = await _leading(table, "only")
        table.is_away = True
        await _until(lambda: only.lease is None)
        table.is_away, back_s = False, _now_s()
        await _until(lambda: only.lease is not None)
        assert _now_s() - back_s < _LEASE_S / 4
        assert table.record.term == 2
        await only.stop()

    run(scenario())


def test_a_lease_that_another_has_taken_ends_the_term_at_the_next_renewal() -> None:
    async def scenario() -> None:
        table = _Table()
        robbed = await _leading(table, "robbed")
        table.record = LeaseRecord("robber", 7, 0, _LEASE_S)
        robbed_s = _now_s()
        await _until(lambda: robbed.lease is None)
        assert _now_s() - robbed_s < _LEASE_S / 2
        await _until(lambda: robbed.lease is not None)
        assert table.record.term == 8
        await robbed.stop()

    run(scenario())


def test_in_doubt_nothing_is_written_until_the_database_has_confirmed_the_lease() -> None:
    async def scenario() -> None:
        table = _Table()
        doubter = _Controller(table, "doubter")
        await _until(lambda: len(table.writes) == 3)
        assert doubter.lease is not None
        table.delay_s = 0.5
        doubted_s = _now_s()
        doubter.lease.doubt()
        await asyncio.sleep(2.0)
        assert [time_s for time_s, _ in table.writes if doubted_s < time_s < doubted_s + 0.5] == []
        assert table.writes[-1][0] > doubted_s + 0.5
        table.record = LeaseRecord("robber", 7, 0, _LEASE_S)
        doubter.lease.doubt()
        before = len(table.writes)
        await _until(lambda: doubter.lease is None)
        assert len(table.writes) == before
        await doubter.stop()

    run(scenario())


def test_a_leader_that_cannot_use_the_database_lets_another_lead() -> None:
    async def scenario() -> None:
        table = _Table()
        first = await _leading(table, "first")
        second = _Controller(table, "second")
        first.failure = StoreError("database x: jobs of another topology")
        await _until(lambda: second.lease is not None)
        await asyncio.sleep(3 * _LEASE_S)
        assert second.lease is not None
        assert not first.task.done()
        await second.stop()
        await first.stop()

    run(scenario())


def test_another_error_while_leading_ends_the_controller_and_gives_the_lease_back() -> None:
    async def scenario() -> None:
        table = _Table()
        failing = _Controller(table, "failing")
        failing.failure = RuntimeError("a bug")
        with pytest.raises(RuntimeError, match="a bug"):
            await failing.task
        assert table.record.lease_s == 0.0

    run(scenario())


def test_an_exclusive_controller_keeps_off_a_database_with_a_leader() -> None:
    async def scenario() -> None:
        table = _Table()
        leader = await _leading(table, "first")
        with pytest.raises(StoreError, match="'first' leads on the database, in term 1"):
            await acquire_term(table, "alone")
        await leader.stop()
        table.record = LeaseRecord("first", 1, 100, _LEASE_S)  # as if it had not been able to say so
        began_s = _now_s()
        assert await acquire_term(table, "alone") == 2
        assert _now_s() - began_s > _LEASE_S
        again_s = _now_s()
        assert await acquire_term(table, "alone") == 3
        assert _now_s() - again_s < _LEASE_S / 4
        second = await _leading(table, "second")
        assert table.record.term == 4
        await second.stop()

    run(scenario())


def test_a_controller_that_has_stepped_down_does_not_claim_to_lead() -> None:
    async def scenario() -> None:
        table = _Table()
        first = await _leading(table, "first")
        table.is_away = True
        await _until(lambda: first.lease is None)
        await asyncio.sleep(_LEASE_S)
        assert first.leadership.known == "who leads is not known, since the database fails"
        table.record = LeaseRecord("second", 2, 0, _LEASE_S)
        table.is_away = False
        await asyncio.sleep(0.2 * _LEASE_S)
        assert first.leadership.known == "second does"
        await asyncio.sleep(0.6 * _LEASE_S)
        assert re.fullmatch(r"second did, and has not been heard of for \d\.\d s", first.leadership.known)
        await first.stop()

    run(scenario())
