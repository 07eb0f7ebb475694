"""Requests that are answered only after commit, and those that are answered at once."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from hostlib.connection import Connection
from hostlib.types import Flow, FlowGroup, GroupInstance, Job, Nic, Profile
from tests.controller.record.lives import Life
from tests.controller.store.held_up import held_up
from tests.patience import PATIENCE_S, until

_TOO_EARLY_S = 0.2
"""An answer that does not wait for the database comes sooner."""
_JOB = Job("gpt", ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))
_RING = FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**6),))


@asynccontextmanager
async def _connected(life: Life) -> AsyncIterator[Connection]:
    life.start()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(life.controller.handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with Connection(f"127.0.0.1:{port}", "token", deadline_s=PATIENCE_S) as connection:
            yield connection
    finally:
        await server.stop(None)
        await life.end()


async def _answered_at_once(call: Coroutine[Any, Any, object]) -> None:
    """A call that is answered though the database takes nothing."""
    with held_up():
        await asyncio.wait_for(call, PATIENCE_S)


async def _answered_when_stored(call: Coroutine[Any, Any, object]) -> None:
    """A call that is answered no earlier than the database takes what it changes."""
    with held_up() as is_asked:
        calling = asyncio.create_task(call)
        await until(is_asked.is_set)
        await asyncio.wait((calling,), timeout=_TOO_EARLY_S)
        assert not calling.done()
    await calling


def test_instances_are_acknowledged_when_stored_and_renewals_where_silence_was(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        async with _connected(life) as connection:
            await connection.register_job(_JOB)
            await connection.register_flow_groups("gpt", [_RING])
            await _answered_when_stored(connection.start_flow_groups("gpt", {"ring": GroupInstance(7)}))
            await _answered_at_once(connection.heartbeat("gpt"))
            life.clock.advance_to(life.clock.now_s() + 1.5)
            registry = life.controller.registry
            registry.record_silences(life.clock.now_s())
            await registry.commit()
            life.store.database.close()

            life.start()
            restored = life.controller.registry
            assert restored.instances("gpt")["ring"].iteration == 7
            assert restored.lease_end_s("gpt") == life.clock.now_s() + 0.5
        async with _connected(life) as connection:
            await _answered_when_stored(connection.heartbeat("gpt"))
            await _answered_at_once(connection.heartbeat("gpt"))
            life.store.database.close()
            life.start()
            assert life.controller.registry.lease_end_s("gpt") == life.clock.now_s() + 2.0

    asyncio.run(scenario())
