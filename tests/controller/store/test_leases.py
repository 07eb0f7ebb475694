"""The lease as a row that two connections compare and set."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from controller.clock import DrivenClock
from controller.leadership.alone import own_term
from controller.leadership.lease import VACANT, LeaseRecord
from controller.policy.profile import Profile
from controller.registration import JobRequest, NotStoredError
from controller.store.errors import StoreError
from controller.store.leases import DatabaseLease
from controller.store.store import Store
from topologies.specification import DumbbellSpecification

_LEASE_S = 4.0


def _job(name: str) -> JobRequest:
    return JobRequest(name, ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))


@pytest.fixture
def tables(address: str) -> Iterator[tuple[DatabaseLease, DatabaseLease]]:
    with closing(DatabaseLease.open(address)) as one, closing(DatabaseLease.open(address)) as other:
        yield one, other


def test_of_two_who_take_what_both_have_seen_one_gets_it(tables: tuple[DatabaseLease, DatabaseLease]) -> None:
    async def scenario() -> None:
        one, other = tables
        for term in range(1, 6):
            seen = await one.read()
            assert seen == await other.read()
            records = [LeaseRecord(name, term, 0, _LEASE_S) for name in ("one", "other")]
            takes = (table.take(seen, record) for table, record in zip(tables, records, strict=True))
            taken = [outcome is True for outcome in await asyncio.gather(*takes, return_exceptions=True)]
            assert sorted(taken) == [False, True]
            assert await one.read() == records[taken.index(True)]

    asyncio.run(scenario())


def test_renewals_are_counted_and_those_of_a_former_term_are_none(tables: tuple[DatabaseLease, DatabaseLease]) -> None:
    async def scenario() -> None:
        one, other = tables
        assert await one.read() == VACANT
        assert not await one.renew(1)
        assert await one.take(VACANT, LeaseRecord("one", 1, 0, _LEASE_S))
        seen = await other.read()
        assert await one.renew(1)
        assert not await other.take(seen, LeaseRecord("other", 2, 0, _LEASE_S))
        seen = await other.read()
        assert seen == LeaseRecord("one", 1, 1, _LEASE_S)
        assert await other.take(seen, LeaseRecord("other", 2, 0, _LEASE_S))
        assert not await one.renew(1)
        await one.give_back(1)
        assert (await other.read()).lease_s == _LEASE_S
        await other.give_back(2)
        assert (await one.read()).lease_s == 0.0

    asyncio.run(scenario())


def test_who_led_before_stores_nothing_any_longer(address: str, tables: tuple[DatabaseLease, DatabaseLease]) -> None:
    async def scenario() -> None:
        fabric = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1).build()
        one, other = tables
        await one.take(VACANT, LeaseRecord("one", 1, 0, _LEASE_S))
        store = Store.open(address, DrivenClock())
        former = store.in_term(1).registry(fabric, 30.0)
        former.register_job(_job("first"), 0.0, "token")
        await former.stored()
        await other.take(await other.read(), LeaseRecord("other", 2, 0, _LEASE_S))
        former.register_job(_job("second"), 0.0, "token")
        with pytest.raises(NotStoredError, match="another controller has taken the lease since term 1"):
            await former.stored()
        assert [job.request.name for job in former.jobs] == ["first"]
        with pytest.raises(StoreError, match="term 1"):
            store.in_term(1).complete_from_s(5.0)
        later = store.in_term(2).registry(fabric, 30.0)
        assert [job.request.name for job in later.jobs] == ["first"]
        await store.close()

    asyncio.run(scenario())


def test_of_those_who_take_no_turns_the_last_has_the_database_and_none_where_one_leads(
    address: str, tables: tuple[DatabaseLease, DatabaseLease]
) -> None:
    async def scenario() -> None:
        fabric = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1).build()
        leader, table = tables
        await leader.take(VACANT, LeaseRecord("one", 1, 0, 2.0))

        async def renew() -> None:
            while True:
                await leader.renew(1)
                await asyncio.sleep(0.1)

        renewing = asyncio.create_task(renew())
        with pytest.raises(StoreError, match="'one' leads on the database, in term 1"):
            await own_term(table, "alone")
        renewing.cancel()
        store = Store.open(address, DrivenClock())
        first = store.in_term(await own_term(table, "alone")).registry(fabric, 30.0)
        first.register_job(_job("first"), 0.0, "token")
        await first.stored()
        second = store.in_term(await own_term(table, "alone")).registry(fabric, 30.0)
        first.register_job(_job("second"), 0.0, "token")
        with pytest.raises(NotStoredError, match="another controller has taken the lease since term 2"):
            await first.stored()
        second.register_job(_job("third"), 0.0, "token")
        await second.stored()
        assert [job.request.name for job in second.jobs] == ["first", "third"]
        await store.close()

    asyncio.run(scenario())
