"""A registry on a database: after a crash at any byte, acknowledged changes are there and refused ones are not."""

import asyncio
import copy
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event

from controller.errors import StoreError, UnknownOutcomeError
from controller.registry.errors import CommitError, RegistrationError
from controller.registry.jobs import RegisteredJob, StoredJob
from controller.registry.journal import JobChange, JobOverwrite
from controller.registry.registry import Registry
from controller.registry.requests import (
    FlowGroupRequest,
    InstanceRequest,
    JobRequest,
    TaskGraphRequest,
    TransferRequest,
)
from controller.store.jobs import write_changes
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.flows import FlowKey
from policies.job import Profile
from policies.task_graph import Computation
from tests.controller.store.registering import held
from tests.controller.store.requests import FABRIC, LEASE_S, amend, flow, in_parts_of
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification

_ADDRESSES = [FABRIC.nics[host][0].address for host in FABRIC.hosts]

Step = Callable[[Registry], object]


@dataclass
class Written:
    """A database of which copies can be taken, as they would lie there after a crash."""

    folder: Path
    store: Store
    fails: bool = False
    states: list[tuple[int, list[StoredJob]]] = field(default_factory=list)
    """How long the log was after every commit, and the jobs then."""

    def note(self, registry: Registry) -> None:
        self.states.append((self._log.stat().st_size if self._log.exists() else 0, held(registry)))

    @property
    def _log(self) -> Path:
        return self.folder / "trainyard.db-wal"

    def crashed(self, log_bytes: int, fabric: Fabric = FABRIC) -> Registry:
        """The registry that is restored when the log has been written up to a byte."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "trainyard.db"
            shutil.copyfile(self.folder / "trainyard.db", copy)
            copy.with_name("trainyard.db-wal").write_bytes(self._log.read_bytes()[:log_bytes])
            store = Store.open(str(copy), DrivenClock(100.0))
            try:
                return store.registry(fabric, LEASE_S)
            finally:
                store.database.close()


@contextmanager
def written() -> Iterator[Written]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "trainyard.db"), DrivenClock())
        files = Written(Path(folder), store)

        @event.listens_for(store.database.engine, "before_execute")
        def before(*_: Any) -> None:
            if files.fails:
                raise StoreError("the disk is full")

        yield files
        store.database.close()


class Fate(Enum):
    """What becomes of a write."""

    STORED = auto()
    STORED_UNHEARD = auto()
    LOST_UNHEARD = auto()
    REFUSED = auto()


_JOBS = ("a", "b")
_ENDS = {"g": (0, 2), "h": (2, 0), "i": (0, 2)}
"""Groups, and between which hosts they send."""


@st.composite
def _groups(draw: st.DrawFn) -> FlowGroupRequest:
    name = draw(st.sampled_from(sorted(_ENDS)))
    drawn_flows = st.tuples(st.integers(0, 1 << 63), st.none() | st.just(50_000), st.none() | st.just(40_000))
    flows = draw(st.lists(drawn_flows, max_size=3))
    return FlowGroupRequest(name, tuple(flow(_ENDS[name], *drawn) for drawn in flows))


@st.composite
def _graphs(draw: st.DrawFn) -> TaskGraphRequest:
    """A graph that sends some groups, for a job that has just these."""
    names = draw(st.sets(st.sampled_from(sorted(_ENDS))))
    sent = (TransferRequest(name, after=(0,)) for name in sorted(names))
    return TaskGraphRequest((Computation(draw(st.floats(0.1, 1.0))), *sent), draw(st.booleans()))


_PROFILES = st.builds(Profile, st.floats(0, 10), st.floats(0, 1), st.floats(0, 1e9))


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    """A call that changes a registry, or is refused."""
    name, profile = draw(st.sampled_from(_JOBS)), draw(_PROFILES)
    match draw(st.integers(0, 9)):
        case 0:
            job = JobRequest(name, ("h0", "h2"), 16, profile)
            age_s = draw(st.floats(0, 100))
            return lambda registry: registry.register_job(job, 3.0, f"token of {name}", age_s)
        case 1 | 2:
            groups, graph = draw(st.lists(_groups(), max_size=3)), draw(st.none() | _graphs())
            return lambda registry: registry.register_flow_groups(name, groups, graph)
        case 3:
            return lambda registry: registry.report_profile(name, profile)
        case 4:
            return lambda registry: registry.deregister(name)
        case 5:
            begun = InstanceRequest(draw(st.integers(0, 2)), draw(st.booleans()))
            told = dict.fromkeys(draw(st.sets(st.sampled_from(sorted(_ENDS)))), begun)
            return lambda registry: registry.update_instances(name, told, 3.0)
        case 6:
            return lambda registry: registry.record_silences(9.0)
        case 7:
            return lambda registry: registry.renew(name, 3.0)
        case 8:
            amended = draw(_graphs())
            return lambda registry: amend(registry, name, profile, amended)
    port = draw(st.integers(50_000, 50_002))
    changes = {
        FlowKey(job, group, 0): FiveTuple(*(_ADDRESSES[end] for end in ends), UDP_PROTOCOL, port, 4791)
        for job, group, ends in ((job, *group) for job in _JOBS for group in _ENDS.items())
    }
    return lambda registry: registry.change_source_ports(changes)


def _outcome(step: Step, registry: Registry) -> object:
    try:
        return step(registry)
    except RegistrationError as error:
        return str(error)


def _assert_alike(one: Registry, other: Registry) -> None:
    """By what they hold and by what they answer: the same source ports are free."""
    assert one.jobs == other.jobs
    request = JobRequest("new", ("h0", "h2"), 1, Profile(1.0, 0.5, 1.0))
    flows = FlowGroupRequest("g", tuple(flow(ends, 1, None) for ends in ((0, 2), (2, 0)) for _ in range(8)))
    for registry in (one, other):
        registry.register_job(request, 0.0)
    assert one.register_flow_groups("new", [flows]) == other.register_flow_groups("new", [flows])


_PARTS = pytest.mark.parametrize("rows", [1_000, 1], ids=["at once", "in parts"])
"""From how many rows on a registration is large, and written in parts."""


@pytest.mark.slow
@_PARTS
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.lists(_steps(), min_size=1, max_size=4), st.booleans()), max_size=6), st.data())
def test_acknowledged_changes_survive_a_crash_at_any_byte(
    rows: int, batches: list[tuple[list[Step], bool]], data: st.DataObject
) -> None:
    async def scenario() -> None:
        with in_parts_of(rows), written() as files:
            registry = files.store.registry(FABRIC, LEASE_S)
            model = Registry(FABRIC, LEASE_S)
            files.note(registry)
            for steps, fails in batches:
                files.fails = fails
                trial = copy.deepcopy(model, {id(FABRIC): FABRIC})
                answers = [_outcome(step, registry) for step in steps]
                assert answers == [_outcome(step, trial) for step in steps]
                assert registry.jobs == model.jobs  # nobody sees what is not stored
                try:
                    await registry.commit()
                    model = trial
                except CommitError:
                    assert fails
                assert held(registry) == held(model)
                files.note(registry)
            files.fails = False
            position = data.draw(st.integers(0, len(files.states) - 1), label="crash after commit")
            last = position + 1 == len(files.states)
            end = files.states[position][0] if last else files.states[position + 1][0] - 1
            cut = data.draw(st.integers(files.states[position][0], max(end, files.states[position][0])), label="cut")
            restored = files.crashed(cut)
            expected = Registry(FABRIC, LEASE_S)
            expected.restore(files.states[position][1], now_s=100.0)
            assert restored.next_lease_end_s == expected.next_lease_end_s
            assert held(restored) == files.states[position][1]

            final, plain = Registry(FABRIC, LEASE_S), files.crashed(files.states[-1][0])
            final.restore(held(plain), now_s=0.0)
            _assert_alike(final, model)

    asyncio.run(scenario())


@_PARTS
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.lists(_steps(), min_size=1, max_size=4), st.sampled_from(Fate)), max_size=6))
def test_an_uncertain_commit_is_overwritten_by_the_next(rows: int, batches: list[tuple[list[Step], Fate]]) -> None:
    async def scenario() -> None:
        with in_parts_of(rows), written() as files:
            registry = files.store.registry(FABRIC, LEASE_S)
            write, fates = files.store.database.write, [fate for _, fate in batches]

            async def doubtful(work: Callable[[Connection], Any]) -> Any:
                fate = fates.pop(0) if fates else Fate.STORED
                if fate is Fate.REFUSED:
                    raise StoreError("the database is away")
                if fate is not Fate.LOST_UNHEARD:
                    result = await write(work)
                if fate is not Fate.STORED:
                    raise UnknownOutcomeError("the database has not answered")
                return result

            with patch.object(files.store.database, "write", doubtful):
                for steps, _ in batches:
                    for step in steps:
                        _outcome(step, registry)
                    with suppress(CommitError):
                        await registry.commit()
                fates.clear()
                await registry.commit()
            assert held(files.store.registry(FABRIC, LEASE_S)) == held(registry)

    asyncio.run(scenario())


def test_a_job_of_another_topology_is_refused_by_name_and_stays() -> None:
    async def scenario() -> None:
        with written() as files:
            registry = files.store.registry(FABRIC, LEASE_S)
            registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
            await registry.commit()
            smaller = ClosSpecification(
                kind="clos", tors=2, aggs=2, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
            ).build()
            with pytest.raises(StoreError, match=r"trainyard.db: job 'gpt' .* unknown host 'h2'"):
                files.store.registry(smaller, LEASE_S)
            assert [job.request.name for job in files.store.registry(FABRIC, LEASE_S).jobs] == ["gpt"]

    asyncio.run(scenario())


def test_a_refused_withdrawal_leaves_lease_and_source_ports() -> None:
    async def scenario() -> None:
        with written() as files:
            registry = files.store.registry(FABRIC, LEASE_S)
            registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
            ring = FlowGroupRequest("ring", (flow((0, 2), 1, None),))
            registry.register_flow_groups("gpt", [ring])
            await registry.commit()
            registry.renew("gpt", 4.0)
            files.fails = True
            registry.deregister("gpt")
            with pytest.raises(CommitError, match="not stored"):
                await registry.commit()
            assert registry.lease_end_s("gpt") == 4.0 + LEASE_S
            registry.register_job(JobRequest("bert", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
            _, groups = registry.register_flow_groups("bert", [ring])
            assert (
                groups[0].flows[0].five_tuple.source_port
                > registry.jobs[0].flow_groups[0].flows[0].five_tuple.source_port
            )

    asyncio.run(scenario())


def test_a_full_disk_is_named_and_committed_jobs_stay() -> None:
    async def scenario() -> None:
        with written() as files:
            registry = files.store.registry(FABRIC, LEASE_S)
            most_pages = 0

            @event.listens_for(files.store.database.engine, "begin")
            def limit(connection: Connection) -> None:
                connection.exec_driver_sql(f"PRAGMA max_page_count = {most_pages or 1 << 30}")

            registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
            await registry.commit()
            before, most_pages = registry.jobs, 1
            ring = FlowGroupRequest("ring", tuple(flow((0, 2), 1, None) for _ in range(500)))
            registry.register_flow_groups("gpt", [ring])
            with pytest.raises(CommitError, match="not stored: the controller's database fails"):
                await registry.commit()
            assert registry.jobs == before
            most_pages = 0
            is_new, _ = registry.register_flow_groups("gpt", [ring])
            await registry.commit()
            assert is_new
            assert files.store.registry(FABRIC, LEASE_S).jobs == registry.jobs

    asyncio.run(scenario())


def test_the_tenant_of_a_job_is_stored(address: str) -> None:
    job = RegisteredJob(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0, "token", (), "vision")

    async def scenario() -> None:
        store = Store.open(address, DrivenClock())
        await store.database.write(partial(write_changes, [JobChange("gpt", None, job)]))
        assert store.registry(FABRIC, LEASE_S).jobs == (job,)
        await store.database.write(partial(write_changes, [JobOverwrite("gpt", replace(job, tenant="speech"))]))
        assert store.registry(FABRIC, LEASE_S).jobs == (replace(job, tenant="speech"),)
        await store.close()

    asyncio.run(scenario())
