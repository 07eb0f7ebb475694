"""Registrations that are written in parts are there whole or not at all; so are task graphs."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select

from controller.errors import StoreError
from controller.registry.errors import CommitError
from controller.registry.jobs import RegisteredFlowGroup
from controller.registry.journal import JobChange
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest, TaskGraphRequest, TransferRequest
from controller.store.jobs import stage_groups
from controller.store.schema import TASK_GRAPH
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.task_graph import Computation
from tests.controller.store.requests import FABRIC, LEASE_S, amend, flow, in_parts_of


def _many(prefix: str, number: int) -> list[FlowGroupRequest]:
    return [FlowGroupRequest(f"{prefix}{position}", (flow((0, 2), 1, None),)) for position in range(number)]


def test_a_graph_is_stored_replaced_and_goes_with_its_job(address: str) -> None:
    async def scenario() -> None:
        store = Store.open(address, DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
        graph = TaskGraphRequest((Computation(1 / 3), *(TransferRequest(f"g{number}") for number in range(5))))
        registry.register_flow_groups("gpt", _many("g", 5), graph)
        await registry.commit()
        assert registry.jobs[0].task_graph is not None
        assert store.registry(FABRIC, LEASE_S).jobs == registry.jobs
        amend(registry, "gpt", Profile(1.0, 0.5, 1.0), replace(graph, is_guessed=True))
        await registry.commit()
        assert registry.jobs[0].task_graph.is_guessed
        assert store.registry(FABRIC, LEASE_S).jobs == registry.jobs
        registry.register_flow_groups("gpt", _many("h", 9))
        await registry.commit()
        assert registry.jobs[0].task_graph is None
        assert store.registry(FABRIC, LEASE_S).jobs == registry.jobs
        amend(registry, "gpt", Profile(1.0, 0.5, 1.0), _sending(registry, "gpt"))
        await registry.commit()
        registry.deregister("gpt")
        await registry.commit()
        rows = store.database.read(lambda connection: connection.execute(select(TASK_GRAPH)).all())
        assert rows == []
        await store.close()

    with in_parts_of(3):
        asyncio.run(scenario())


def _sending(registry: Registry, name: str) -> TaskGraphRequest:
    job = registry.job(name)
    assert job is not None
    return TaskGraphRequest((Computation(0.5), *(TransferRequest(group.name) for group in job.flow_groups)))


def test_a_large_registration_is_there_whole_or_not_at_all(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        store = Store.open(address, DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
        registry.register_flow_groups("gpt", _many("first", 2))
        await registry.commit()
        num_writes = 0
        write = store.database.write

        async def dying(work: Callable[[Connection], Any]) -> Any:
            nonlocal num_writes
            num_writes += 1
            # After every part there is the job as it was, for a controller that starts then.
            assert len(store.registry(FABRIC, LEASE_S).jobs[0].flow_groups) == 2
            if num_writes == 3:
                raise StoreError("the disk is full")
            return await write(work)

        with monkeypatch.context() as patched:
            patched.setattr(store.database, "write", dying)
            registry.register_flow_groups("gpt", _many("lost", 10))
            with pytest.raises(CommitError):
                await registry.commit("gpt")
        assert num_writes == 3
        assert len(registry.jobs[0].flow_groups) == 2
        # What is left of it is in nobody's way: neither of a large one, nor of a small one, nor of the job's end.
        registry.register_flow_groups("gpt", _many("second", 7))
        await registry.commit("gpt")
        assert store.registry(FABRIC, LEASE_S).jobs == registry.jobs
        assert len(registry.jobs[0].flow_groups) == 9
        registry.deregister("gpt")
        await registry.commit()
        assert store.registry(FABRIC, LEASE_S).jobs == ()
        await store.close()

    with in_parts_of(3):
        asyncio.run(scenario())


def test_a_small_registration_replaces_what_is_left_of_a_large_one(address: str) -> None:
    async def scenario() -> None:
        store = Store.open(address, DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 1.0)), 0.0)
        await registry.commit()
        before = registry.jobs[0]
        left = replace(before, flow_groups=tuple(RegisteredFlowGroup(f"g{number}", ()) for number in range(5)))
        await store.database.write(partial(stage_groups, JobChange("gpt", before, left), 0))
        assert store.registry(FABRIC, LEASE_S).jobs == (before,)
        registry.register_flow_groups("gpt", _many("small", 2))
        await registry.commit()
        assert store.registry(FABRIC, LEASE_S).jobs == registry.jobs
        await store.close()

    asyncio.run(scenario())
