"""Operators pause planning and withdraw all rules; it outlives the controller."""

from dataclasses import replace
from pathlib import Path as File

import pytest

from controller.errors import StoreError
from controller.links.drains import DrainKind, DrainTarget
from controller.planning.interventions import HandPin, Interventions
from tests.controller.planning.hands import World, run


def test_a_pause_keeps_the_plan_in_force_while_jobs_come_and_go(tmp_path: File) -> None:
    async def test(world: World) -> None:
        held, written = world.decision, len(world.life.southbound.written)
        assert await world.hands.pause("alice", "maintenance")
        assert not await world.hands.pause("bob", "too late")
        pause = world.hands.pause_state
        assert pause is not None
        assert (pause.by, pause.reason, pause.is_released) == ("alice", "maintenance", False)
        world.register("late", ("h4", "h5"))
        world.life.controller.registry.deregister("bert")
        assert await world.settle() is held
        assert len(world.life.southbound.written) == written
        assert world.planner.next_timer_s is not None  # leases end as ever
        assert await world.hands.resume()
        assert not await world.hands.resume()
        await world.settle()
        assert {job.name for job in world.decision.plan.jobs} == {"gpt", "late"}

    run(tmp_path, test)


def test_a_dead_link_is_left_at_once_during_a_pause(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.pin("gpt/ring/0", None, world.named(world.other_path("gpt/ring/0")), 60.0, "")
        await world.settle()
        await world.hands.pause("alice")
        steered = {rule.next_link for rules in world.decision.rules.values() for rule in rules}
        world.fail(world.planned("gpt/ring/0").path[1])  # type: ignore[index]
        await world.planner.leave_dead_links()
        assert world.planner.routing.dead
        left = {rule.next_link for rules in world.decision.rules.values() for rule in rules}
        assert left - {None} < steered
        assert world.planner.routing.dead.isdisjoint(left - {None})
        number = world.decision.number
        world.life.fail()
        await world.settle()
        assert world.planner.routing.dead  # used again from the next Plan on
        assert world.decision.number == number
        await world.hands.resume()
        await world.settle()
        assert not world.planner.routing.dead

    run(tmp_path, test)


def test_a_plan_under_way_is_dropped_when_planning_is_paused(tmp_path: File) -> None:
    async def test(world: World) -> None:
        held, decide = world.decision, world.planner.policy.decide

        async def decide_and_pause(snapshot: object) -> object:
            plan = await decide(snapshot)  # type: ignore[arg-type]
            await world.hands.pause("alice")
            return plan

        world.planner.policy.decide = decide_and_pause  # type: ignore[method-assign,assignment]
        world.register("late", ("h4", "h5"))
        assert await world.settle() is held
        world.planner.policy.decide = decide  # type: ignore[method-assign]
        await world.hands.resume()
        assert world.planner._changed.is_set()
        await world.planner.settle()
        assert "late" in {job.name for job in world.decision.plan.jobs}

    run(tmp_path, test)


def test_a_drain_says_that_it_waits_for_planning(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.pause("alice")
        target = DrainTarget(DrainKind.SWITCH, "a0")
        await world.draining.drain(target, "bob", is_forced=False)
        await world.settle()
        [state] = await world.draining.states()
        assert "planning, which is paused, to be resumed" in state.waits_for
        await world.hands.resume()
        await world.settle()
        [state] = await world.draining.states()
        assert state.waits_for == ()

    run(tmp_path, test)


def test_release_withdraws_all_and_resume_writes_it_again(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.pin("gpt/ring/0", None, world.named(world.other_path("gpt/ring/0")), 60.0, "")
        await world.settle()
        before = world.decision
        assert before.rules
        assert await world.hands.release("alice", "all out") == (True, ())
        southbound = world.life.southbound
        assert (southbound.written[-1], southbound.serves_levels, southbound.keeps_found) == ({}, False, False)
        told = world.life.controller.planner._directives._newest
        flows = [flow for directives in told.values() for flow in directives.flows]
        assert flows
        assert {flow.level for flow in flows} == {0}
        ports = {flow.key: flow.five_tuple.source_port for job in before.snapshot.jobs for flow in job.flows}
        assert {flow.key: flow.source_port for flow in flows} == ports
        await world.settle()
        assert southbound.written[-1] == {}
        assert await world.hands.release("alice") == (False, ())
        await world.hands.resume()
        await world.settle()
        again = world.decision
        assert southbound.serves_levels
        assert again.rules == before.rules
        assert southbound.written[-1] == again.switch_rules

    run(tmp_path, test)


def test_a_pause_can_become_a_release(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.pause("alice", "maintenance")
        assert await world.hands.release("bob") == (True, ())
        pause = world.hands.pause_state
        assert pause is not None
        assert (pause.by, pause.reason, pause.is_released) == ("bob", "maintenance", True)

    run(tmp_path, test)


def test_a_pause_and_pins_outlive_the_controller(tmp_path: File) -> None:
    async def test(world: World) -> None:
        path = world.other_path("gpt/ring/0")
        await world.hands.pin("gpt", 1, None, 1.0, "alice")
        await world.hands.pin("bert", 3, None, 500.0, "alice")
        world.clock.advance_to(world.clock.now_s() + 0.1)
        await world.hands.pin("gpt/ring/0", None, world.named(path), 500.0, "alice")
        await world.hands.pause("alice", "maintenance")
        await world.life.end()
        world.clock.advance_to(world.clock.now_s() + 2.0)
        world.start()
        pause = world.hands.pause_state
        assert pause is not None
        assert (pause.by, pause.reason) == ("alice", "maintenance")
        await world.settle(after_s=100.0)
        assert world.planner.decision is None
        # What it has found is the Plan in force.
        assert world.life.southbound.keeps_found
        assert world.life.southbound.written == []
        assert [(state.pin.target, state.problem) for state in world.hands.pin_states()] == [
            ("bert", "waits until planning is resumed"),
            ("gpt/ring/0", "waits until planning is resumed"),
        ]
        await world.hands.resume()
        await world.settle()
        assert not world.life.southbound.keeps_found
        assert world.planned("gpt/ring/0").path == path
        assert world.planned("bert/ring/0").level == 3
        assert [state.problem for state in world.hands.pin_states()] == ["", ""]

    run(tmp_path, test)


def test_a_release_outlives_the_controller(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.release("alice")
        await world.life.end()
        world.start()
        await world.planner.begin_released()
        southbound = world.life.southbound
        assert (southbound.written, southbound.serves_levels, southbound.keeps_found) == ([{}], False, False)
        await world.settle()
        assert southbound.written == [{}]
        await world.hands.resume()
        await world.settle()
        assert southbound.serves_levels
        assert southbound.written[-1] == world.decision.switch_rules

    run(tmp_path, test)


def test_what_the_database_does_not_keep_is_not_done(tmp_path: File) -> None:
    class Refusing:
        async def keep_pause(self, _: object) -> None:
            raise StoreError("database: full")

        async def keep_pin(self, _: object) -> None:
            raise StoreError("database: full")

        async def forget_pin(self, _: object) -> None:
            raise StoreError("database: full")

    async def test(world: World) -> None:
        pin = HandPin("gpt", 1, None, 0.0, 1e9, "")
        interventions = Interventions(world.clock, None, (pin,), Refusing())
        for attempt in (
            interventions.begin_pause("alice", "", is_released=False),
            interventions.pin(replace(pin, level=2)),
            interventions.unpin("gpt"),
        ):
            with pytest.raises(StoreError):
                await attempt
        assert (interventions.pause, interventions.pins) == (None, (pin,))

    run(tmp_path, test)
