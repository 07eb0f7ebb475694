"""A leader that loses the lead while it goes over to another fabric says with which file the next term begins."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.clock import WallClock
from controller.config import ControllerConfig, LeadershipConfig
from controller.leadership.lease import VACANT, LeaseRecord
from controller.process import changing
from controller.process.active_controller import ActiveController
from controller.process.standby import Standby
from controller.reload.errors import ReloadError
from controller.reload.keys import key_changes
from controller.store.store import Store
from tests.integration.reloading import configuration, part, served, whole
from tests.patience import until
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=1, gpus_per_host=2, host_link_gbps=10, uplink_gbps=10
)
WHOLE = whole(CLOS)
SMALL = part(WHOLE, cables=[("t0", "a1")])
_LEASE_S = 4.0


class _Table:
    """The lease in memory, which ``lose`` has end at its next renewal; nobody else wants it."""

    def __init__(self) -> None:
        self.record = VACANT
        self._is_lost = False

    def lose(self) -> None:
        self._is_lost = True

    async def read(self) -> LeaseRecord:
        return self.record

    async def take(self, _seen: LeaseRecord, record: LeaseRecord) -> bool:
        self.record = record
        return True

    async def renew(self, _term: int) -> bool:
        is_held, self._is_lost = not self._is_lost, False
        return is_held

    async def give_back(self, _term: int) -> None:
        pass


class _Stuck:
    """Something that never ends, and tells when it has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, *_: object) -> Any:
        self.begun.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def _leading(
    folder: Path, topology: dict[str, Any]
) -> AsyncIterator[tuple[Standby, _Table, Callable[..., ControllerConfig]]]:
    """A controller that leads on the part of a fabric; and its configuration with other values of keys."""
    async with served(CLOS.build()) as (_, addresses):
        document = {"topology": topology, "switches": addresses, "discovery": False, "damping": None}
        config = configuration(document)
        fabric, table = config.topology.build(), _Table()
        routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
        store = Store.open(f"{folder}/controller.db", WallClock())
        leadership = LeadershipConfig(name="one", lease_s=_LEASE_S)
        standby = Standby(config, leadership, routing, WallClock(), store, table)
        running = asyncio.create_task(standby.run())
        try:
            await until(lambda: standby.controller is not None)
            yield standby, table, lambda **keys: configuration({**document, **keys})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await store.close()


async def _lost_meanwhile(
    standby: Standby, table: _Table, stuck: _Stuck, change: Coroutine[Any, Any, Any]
) -> asyncio.Task[Any]:
    """Lose the lead once a change is stuck, and wait for the next term."""
    task = asyncio.create_task(change)
    await stuck.begun.wait()
    core = standby.controller
    table.lose()
    await until(lambda: standby.controller not in (core, None))
    await asyncio.wait({task})
    return task


def _num_cables(standby: Standby) -> int:
    assert standby.controller is not None
    return len(standby.controller.registry.fabric.cables)


@pytest.mark.parametrize("is_over", [True, False])
def test_the_next_term_begins_with_what_the_controller_has_gone_over_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_over: bool
) -> None:
    async def test() -> None:
        async with _leading(tmp_path, SMALL) as (standby, table, configured):
            before, config, stuck = standby.config, configured(topology=WHOLE), _Stuck()
            if is_over:
                monkeypatch.setattr(ActiveController, "in_force", stuck)
            else:
                monkeypatch.setattr("controller.process.changing._FabricChange._try_switches", stuck)
            changes = key_changes(before, config)
            change = await _lost_meanwhile(standby, table, stuck, standby.change(config, changes))
            if is_over:
                words = "this controller leads no longer: it goes by this file once it leads again"
                assert change.result() == ["topology: cables added: t0:3 - a1:1", words]
                assert standby.config is config
            else:
                with pytest.raises(ReloadError, match="goes by the file before once it leads again"):
                    change.result()
                assert standby.config is before
            assert _num_cables(standby) == len((WHOLE if is_over else SMALL)["cables"])

    asyncio.run(test())


def test_the_next_term_does_not_begin_with_what_the_controller_is_going_back_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with _leading(tmp_path, WHOLE) as (standby, table, configured):
            # A reload before it counts, too: the term began with another policy.
            other, small = configured(policy="ecmp"), configured(policy="ecmp", topology=SMALL)
            await standby.change(other, key_changes(standby.config, other))
            stuck, carry_out = _Stuck(), changing._FabricChange.carry_out

            async def stuck_when_going_back(change: Any) -> Any:
                monkeypatch.setattr(changing._FabricChange, "carry_out", stuck)
                return await carry_out(change)

            monkeypatch.setattr(changing._FabricChange, "carry_out", stuck_when_going_back)
            monkeypatch.setattr(ActiveController, "refusals", _Refusals())
            change = await _lost_meanwhile(standby, table, stuck, standby.change(small, key_changes(other, small)))
            with pytest.raises(ReloadError, match="goes by the file before once it leads again"):
                change.result()
            assert standby.config is other
            assert _num_cables(standby) == len(WHOLE["cables"])

    asyncio.run(test())


class _Refusals:
    """What switches refuse: nothing when it is asked first, and a route from then on."""

    def __init__(self) -> None:
        self._answers: list[dict[str, str]] = [{}]

    def __get__(self, *_: object) -> dict[str, str]:
        return self._answers.pop() if self._answers else {"t0": "switch 't0': it has no room"}


def test_a_change_that_is_given_up_before_it_begins_is_told_too(tmp_path: Path) -> None:
    async def test() -> None:
        async with _leading(tmp_path, SMALL) as (standby, _, _):
            active = standby._active
            assert active is not None
            changing = asyncio.create_task(active.see_through(_Stuck()()))
            while active._changing is None:
                await asyncio.sleep(0)
            active.end()
            with pytest.raises(ReloadError, match="has ended meanwhile"):
                await changing

    asyncio.run(test())
