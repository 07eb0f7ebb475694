"""The leader's lease as a row that two connections compare and swap."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing

import pytest

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.leadership.lease import VACANT, LeaseRecord
from controller.registry.errors import CommitError
from controller.registry.requests import JobRequest
from controller.store.leader_lease import DatabaseLease
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from topologies.specification import DumbbellSpecification

_LEASE_S = 4.0


def _job(name: str) -> JobRequest:
    return JobRequest(name, ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))


@pytest.fixture
def tables(address: str) -> Iterator[tuple[DatabaseLease, DatabaseLease]]:
    with closing(DatabaseLease.open(address)) as one, closing(DatabaseLease.open(address)) as other:
        yield one, other


def test_one_of_two_controllers_takes_a_lease_that_both_have_seen(tables: tuple[DatabaseLease, DatabaseLease]) -> None:
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


def test_renewals_are_counted_but_not_those_of_a_former_term(tables: tuple[DatabaseLease, DatabaseLease]) -> None:
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


async def _take(table: DatabaseLease, name: str) -> int:
    seen = await table.read()
    term = seen.term + 1
    assert await table.take(seen, LeaseRecord(name, term, 0, _LEASE_S))
    return term


@pytest.mark.parametrize("begin", [_take, acquire_term], ids=["they take turns", "they take none"])
def test_a_former_leader_commits_nothing(
    address: str,
    tables: tuple[DatabaseLease, DatabaseLease],
    begin: Callable[[DatabaseLease, str], Coroutine[None, None, int]],
) -> None:
    async def scenario() -> None:
        fabric = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1).build()
        one, other = tables
        store = Store.open(address, DrivenClock())
        former = store.in_term(await begin(one, "one")).registry(fabric, 30.0)
        former.register_job(_job("first"), 0.0, "token")
        await former.commit()
        await begin(other, "other")
        former.register_job(_job("second"), 0.0, "token")
        with pytest.raises(CommitError, match="another controller leads now"):
            await former.commit()
        assert [job.request.name for job in former.jobs] == ["first"]
        with pytest.raises(StoreError, match="term 1"):
            await store.in_term(1).record_grace(5.0)
        assert "another controller has taken the lease since term 1" in store.database.health.problem
        # What needs no term, as the audit trail, is stored, and does not hide it.
        await store.record_grace(5.0)
        assert "another controller has taken the lease since term 1" in store.database.health.problem
        later = store.in_term(await begin(other, "other")).registry(fabric, 30.0)
        assert store.database.health.problem == ""
        later.register_job(_job("third"), 0.0, "token")
        await later.commit()
        assert [job.request.name for job in later.jobs] == ["first", "third"]
        await store.close()

    asyncio.run(scenario())
