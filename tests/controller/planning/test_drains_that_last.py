"""Drains outlive the controller that began them, as far as the topology has what they name."""

import asyncio
from pathlib import Path

import pytest

from controller.errors import StoreError
from controller.links.drains import DrainKind, DrainTarget
from controller.record.lines import read_decisions
from controller.record.replay import Verdict, replay
from tests.controller.planning.drains import AGG
from tests.controller.record.lives import CLOS, Life


def test_drains_outlive_the_controller_and_their_plans_replay(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        await life.live(3)
        await life.controller.draining.drain(AGG, "alice", is_forced=False)
        await life.live(3)
        drains, routing = life.controller.draining.drains, life.controller.planner.routing
        assert routing.drained
        await life.controller.planner.flush_record()
        life.start()  # after a crash
        assert life.controller.draining.drains == drains
        await life.controller.planner.begin_drained()
        # Before anything else is written, nothing is routed over it.
        assert [each.dead for each in life.southbound.routings] == [routing.dead]
        await life.live(3)
        assert life.controller.planner.routing.dead == routing.dead
        await life.controller.draining.undrain(AGG)
        await life.live(2)
        assert life.controller.planner.routing.dead == frozenset()
        await life.controller.planner.flush_record()
        replayed = list(replay(read_decisions("record", life.lines())))
        assert [each.verdict for each in replayed] == [Verdict.SAME] * len(replayed)
        assert len(replayed) >= 10
        await life.end()
        life.start()
        assert life.controller.draining.drains == ()
        await life.end()

    asyncio.run(scenario())


def test_what_a_former_leader_drains_is_refused_and_its_successor_keeps_the_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        await life.controller.draining.drain(AGG, "alice", is_forced=False)
        life.store.database.close()
        with pytest.raises(StoreError):
            await life.controller.draining.drain(DrainTarget(DrainKind.HOST, "h0"), "alice", is_forced=False)
        assert [drain.target for drain in life.controller.draining.drains] == [AGG]
        life.start()
        assert [drain.target for drain in life.controller.draining.drains] == [AGG]
        await life.end()

    asyncio.run(scenario())


def test_a_drain_of_what_the_topology_no_longer_has_is_kept_and_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        gone = DrainTarget(DrainKind.SWITCH, "a1")
        await life.controller.draining.drain(gone, "alice", is_forced=False)
        await life.store.close()
        life.start(CLOS.model_copy(update={"aggs": 1}))
        [state] = await life.controller.draining.states()
        assert state.waits_for == ("the topology to have it: it does not",)
        assert life.controller.planner.links.dead_links(0.0) == frozenset()
        await life.controller.draining.undrain(gone)
        await life.end()

    asyncio.run(scenario())
